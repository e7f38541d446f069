"""A world for tests: the production engine on a virtual clock and event loop, with scripted workers and crashes."""
