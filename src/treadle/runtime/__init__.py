"""Carries out the decisions of the kernel. Clocks, threads and the network are used here and nowhere below."""
