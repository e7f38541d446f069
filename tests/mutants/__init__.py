"""Planted bugs: one mistake at a time in kernel, runtime or store, to find out whether the suite would notice.

bug                what a planted bug is: a name, a file, old text, new text
catalogue          the mistakes in the kernel
runtime_catalogue  the mistakes in the runtime
random_changes     small changes of any line, drawn from a seed; equivalent.toml lists those nobody could notice
suite              the fast suite of a room, run in a process of its own against a patched copy of src/
hunt               copies, patches, runs, reports; two mutants at a time
__main__           `python -m tests.mutants [NAME…] [--random N --seed S] [--in ROOM] …`, also `./dev mutants`
"""
