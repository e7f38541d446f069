"""The project around workflow files: the settings of `treadle.toml`, and what all definitions of a project share.

settings   the table of settings; a flag wins over the environment, that over treadle.toml, that over the default
shared     the library and the worker types that definitions of the project may name

The command line and the pytest plug-in both read a project here, so that they agree. Must not open a store.
"""
