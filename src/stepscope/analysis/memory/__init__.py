"""Questions about memory."""
