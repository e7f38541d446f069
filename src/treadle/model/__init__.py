"""The words of the project, as data that every other package shares. No behaviour beyond invariants, no imports of
ours."""
