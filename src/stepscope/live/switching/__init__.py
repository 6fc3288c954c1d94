"""Ways to switch a running job besides the command line: a mounted file, MindCluster's gRPC service, a ConfigMap. All
of them end in the same validated state, `control/board.py`, and the last change wins."""
