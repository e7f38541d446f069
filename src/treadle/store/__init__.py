"""Storage of runs: one port of domain verbs, one package per store. A store keeps facts and knows no rules."""
