"""Questions about pipeline stages and parallel strategy."""
