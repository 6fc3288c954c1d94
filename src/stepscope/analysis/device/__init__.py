"""How work reaches a device: launches, queues, copies, sequences of kernels, hardware counters."""
