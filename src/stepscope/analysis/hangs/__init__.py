"""What dumps of a flight recorder show of a job that hangs."""
