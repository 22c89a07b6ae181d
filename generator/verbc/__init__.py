"""verbc compiles YAML specs of verbs into installable, typed, self-contained MCP servers."""

__version__ = "0.1.0"
