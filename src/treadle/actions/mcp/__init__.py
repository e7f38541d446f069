"""Tools of MCP servers as actions: the kind `mcp`. `kind.py` is the entry; only `session.py` needs the extra."""
