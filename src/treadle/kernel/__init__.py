"""Pure: everything that decides. No I/O, clock, randomness or logging; `decide` is a function of its arguments."""
