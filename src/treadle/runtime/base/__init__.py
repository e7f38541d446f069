"""Ground that every room of the runtime stands on: ports, clocks, logs, patience with a store that does not answer."""
