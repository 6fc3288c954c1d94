"""Questions about the job as a graph of work: what each piece waits for, and how long steps take if some changes."""
