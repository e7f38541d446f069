"""Planted bugs: the kernel with one mistake at a time, to find out whether the suite would notice.

catalogue   the mistakes: a name, a file of the kernel, old text, new text
suite       the fast suite, run in a process of its own against a patched copy of src/
hunt        copies, patches, runs, reports; two mutants at a time
__main__    `python -m tests.mutants [NAME…] [--list] [--jobs N]`, also `./dev mutants`
"""
