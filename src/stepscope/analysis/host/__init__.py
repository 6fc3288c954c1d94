"""Questions about the host: processors, memory, Python functions."""
