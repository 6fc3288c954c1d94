"""Proxy and manager of a job: who takes part, the state of the switches, and who has applied it."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before gRPC is loaded: its errors reach users as ours, once
