"""Modules that every room of the runtime uses: ports, clocks, logs, and waiting for a store that does not answer."""
