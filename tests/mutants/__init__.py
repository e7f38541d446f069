"""Planted bugs: one mistake at a time in kernel, runtime or store, to find out whether the suite would notice.

bug                what a planted bug is: a name, a file, old text, new text
catalogue          the mistakes in the kernel
change_catalogue   the mistakes in forks, changes by operators, other versions, limits on starts, budgets
runtime_catalogue  the mistakes in the runtime
lease_catalogue    the mistakes in leases and hand-over
random_changes     small changes of any line, drawn from a seed; equivalent.toml lists those nobody could notice
reach              which tests execute which function, recorded once: a hunt begins with those that reach the change
suite              the fast suite of a room, run in a process of its own against a patched copy of src/
hunt               copies, patches, runs, reports; two mutants at a time
__main__           `python -m tests.mutants [NAME…] [--random N --seed S] [--in ROOM] …`, also `./dev mutants`
"""
