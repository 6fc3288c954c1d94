"""Training jobs whose losses are known: simulated with and without a fault, from the same random numbers."""
