"""The frame that all verbs share: exit codes, options, reading of arguments and files, opening a store."""
