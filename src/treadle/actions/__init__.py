"""The actions of steps: one file per kind of action, one small protocol, one registry."""
