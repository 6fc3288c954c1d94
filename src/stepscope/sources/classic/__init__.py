"""Classic MindSpore profiles (1.1 to 2.4): `profiler/` directories with the files of all ranks, by suffix.

Three layouts: one flat directory for all ranks; folders of hosts with device numbers (`cluster_profiler/`), whose ranks
`hccl.json` gives; and single files of dataset profiling. Each subject has a module here.
"""

from stepscope.sources.classic.source import ClassicSource

__all__ = ["ClassicSource"]
