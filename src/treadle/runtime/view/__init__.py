"""Looking into runs: visits, groups, waits, the state at any event, and the difference between two."""
