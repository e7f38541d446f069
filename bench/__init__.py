"""Measurements. `./dev bench` runs them; `bench/README.md` keeps the figures."""
