"""Questions that compare the ranks of a job."""
