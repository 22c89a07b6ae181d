"""Drive the li command line from an MCP client."""

__version__ = "0.1.0"
