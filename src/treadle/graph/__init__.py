"""Pure: definition → ExecutionGraph. Everything the kernel looks up while deciding is computed here, once."""
