"""Groups of methods of a `Client` that a server needs beside those of runs."""
