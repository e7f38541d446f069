"""A language model for tests: a local server that speaks the protocols of real ones and gives scripted answers."""
