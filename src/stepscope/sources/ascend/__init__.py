"""Ascend rank directories (`*_ascend_pt`, `*_ascend_ms`): the text export and the database export.

Both become the same tables, up to what one of them does not hold:

- text only: sequence numbers of autograd, allocations and ranges of the task queue if the database has none
  (and so the self time of the operators around them), memory of more components, every plane of a communication
  task;
- database only: marked ranges (`MSTX_EVENTS`), communication calls by the framework's marks, the call that launched a
  memory operation, the device's name;
- the wait before a kernel is recorded in kernel_details.csv and taken from the stream's tasks in a database, where
  communication has none;
- totals of API calls are summed from the calls that the export holds.
"""

from stepscope.sources.ascend.source import AscendDb, AscendText

__all__ = ["AscendDb", "AscendText"]
