"""Questions about floating point operations."""
