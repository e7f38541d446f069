"""L3: the command line. One file per verb or group of verbs; each owns its arguments and how its answer looks.

main            the frame: verbs by name, imported when used
exits           exit codes, and which error means which
configuration   settings: flags over environment over treadle.toml over defaults
opening         how a verb gets at the runs
emit            tables and JSON; data on stdout, words on stderr
overview        a history folded into counts; picture, narration and watching show it

Must not decide anything about a run: what it knows comes from the engine's face.
"""
