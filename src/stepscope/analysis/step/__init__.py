"""Questions about steps: where their time goes, and why."""
