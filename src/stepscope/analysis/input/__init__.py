"""Questions about the input pipeline."""
