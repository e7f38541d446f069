"""L0, words: data that every other room shares. No behaviour beyond invariants, no imports of ours."""
