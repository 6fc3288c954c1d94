"""Operation-level traces: a Parquet file with a row per operation of every recorded rank of a job.

`trace-<name>.parquet` has the columns of `columns.py`; `meta-<name>.yaml` (or `.yml`, `.json`) beside it, if it is
there, states the parallel sizes. One rank of a tensor-parallel group stands for all of them.

Each step counts its time from 0. The steps are placed one after another in the order of their numbers, each as long as
its last operation on any rank takes; what happened between recorded steps is not known.
"""

from stepscope.sources.operation_trace.source import OperationTraceSource

__all__ = ["OperationTraceSource"]
