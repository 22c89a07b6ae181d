class Handlers:
    pass
