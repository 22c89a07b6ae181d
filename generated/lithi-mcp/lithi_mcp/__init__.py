"""Quote, run and follow compute work under your account."""

__version__ = "0.1.0"
