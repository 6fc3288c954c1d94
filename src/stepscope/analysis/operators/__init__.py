"""Questions about operators and kernels."""
