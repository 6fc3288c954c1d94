"""Questions about communication calls, groups and links."""
