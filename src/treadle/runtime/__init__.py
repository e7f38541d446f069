"""L2: what makes the kernel's decisions happen. Here live clocks, threads and the outside world."""
