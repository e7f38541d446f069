"""L3: the command line. One file per verb; each owns its arguments, its exit codes and how results are shown.

Data goes to stdout, everything about the work itself to stderr. Exit codes: 0 done · 1 the answer is no · 2 wrong
usage · 3 what was given is invalid.
"""
