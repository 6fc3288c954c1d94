"""What MindSpore's dataset profiling wrote of queues, batches and CPU use: one reader, wherever the files lie.

They stand in classic profiles, in directories of later profilers, and in our own recordings. Times in them are of the
host's monotonic clock; who calls says how that stands to the clock of the rest.
"""

from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.stages import read_stages
from stepscope.sources.minddata.write import write_minddata

__all__ = ["Clock", "MinddataFiles", "read_stages", "write_minddata"]
