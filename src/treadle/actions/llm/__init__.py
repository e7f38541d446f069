"""Language models as actions: the kind `llm`. `kind.py` is the way in; only `provider.py` needs the extra."""
