"""Proxy and manager of a job: who takes part, the state of the switches, and who has applied it."""
