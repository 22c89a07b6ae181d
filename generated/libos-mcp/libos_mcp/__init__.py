"""Call registered tools of other MCP servers, within your rights."""

__version__ = "0.1.0"
