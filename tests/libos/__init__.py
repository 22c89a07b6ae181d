"""libos-mcp from outside: clients in front, its operator beside it, and upstream servers behind, scripted and real."""
