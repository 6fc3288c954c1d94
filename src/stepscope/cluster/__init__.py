"""A job on several hosts: their profiles are brought together in one directory."""
