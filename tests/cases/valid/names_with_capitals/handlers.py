class Handlers:
    """Answers nothing; the case is about what is generated around it."""
