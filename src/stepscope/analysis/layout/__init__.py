"""Where each rank of a job is: hosts, devices, and the dimensions of its parallel layout."""
