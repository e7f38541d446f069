"""Queue work on a shared store: the owner of a run offers it, workers claim it, execute it and report."""
