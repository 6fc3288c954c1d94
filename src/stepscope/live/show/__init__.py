"""What a running job shows of itself: status, live screen, metrics, events and timelines."""
