"""Running jobs simulated as the digests and pulses that a detector gets. Shares no code with the detector."""
