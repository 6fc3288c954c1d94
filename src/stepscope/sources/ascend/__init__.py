"""Ascend rank directories (`*_ascend_pt`, `*_ascend_ms`): the text export and the database export.

Both become the same tables, up to what one of them does not hold:

- text only: autograd sequence numbers, `Enqueue@` and `Dequeue@` where the database keeps none, one row for each
  plane of a communication task, memory components other than the database's, the size of no memory operation
  whose event lacks it;
- database only: marked ranges (`MSTX_EVENTS`), the launch of memory operations, the device's name;
- the wait before a kernel is stated in kernel_details.csv and recomputed from the stream's tasks in a database;
- communication kernels have no wait in a database.
"""

from stepscope.sources.ascend.db import AscendDb
from stepscope.sources.ascend.text import AscendText

__all__ = ["AscendDb", "AscendText"]
