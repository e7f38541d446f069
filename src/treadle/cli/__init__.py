"""L3: the command line. Each verb is one file that owns its arguments and the look of its answer.

main         the verbs by name; a verb's file is imported when the verb is used. Beside it: misuse, completion
definitions  verbs on workflow files            runs    verbs on runs, gates and what runs have kept
nodes        verbs on engines, workers, queues  upkeep  verbs on a store as a whole
watch        a run under way, as a picture or line by line
frame        exit codes, shared options, reading of arguments, opening a store
screen       tables and JSON; data goes to stdout, sentences about it to stderr

The rooms of verbs do not import each other; all of them may use watch, frame and screen, in this direction only
(tests/arch/house.py has the table). Must not decide anything about a run: what it knows comes from the engine's face.
"""
