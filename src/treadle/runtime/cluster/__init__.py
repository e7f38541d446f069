"""Several processes on one store: members and their shards, notices between them, proof that a predecessor is dead."""
