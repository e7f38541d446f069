"""Tools of MCP servers as actions: the kind `mcp`. `kind.py` is the way in; only `session.py` needs the extra."""
