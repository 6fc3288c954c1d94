"""Data preparation of a classic profile: dataset operators, queues, batches and CPU use.

Their times keep the host's monotonic clock: nothing in a classic profile relates it to the epoch.
"""

from __future__ import annotations

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.write import write_minddata


def write_data_preparation(files: RankFiles, sink: Sink) -> None:
    """Write `pipeline_operators`, `input_pipeline` and `host_usage`."""
    found = MinddataFiles(
        pipeline_raw=files.one("pipeline_raw"),
        pipeline=files.one("pipeline"),
        usage=files.one("cpu_usage"),
        device_queue=files.one("device_queue"),
        iterator=files.one("iterator"),
        ai_cpu=files.one("ai_cpu_queue"),
        get_next=files.one("get_next"),
    )
    write_minddata(found, Clock(), sink)
