"""Language models as actions: the kind `llm`. `kind.py` is the entry; only `provider.py` needs the extra packages."""
