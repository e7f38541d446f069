"""What a step can do: one file per action kind, one small protocol, one registry."""
