"""The files of MindSpore's classic `profiler/` directory, also for PyTorch: one module per kind of file."""
