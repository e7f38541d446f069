"""Modules that every room of the runtime uses: ports, clocks, logs, and patience with a store that does not answer."""
