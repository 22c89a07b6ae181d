class Handlers:
    def go(self:
        pass
