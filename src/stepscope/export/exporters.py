"""All kinds of output, in the order in which they are made. A new one is a file of code and a line here."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.export.ascend_ms import write_ascend_ms
from stepscope.export.cluster_analyse import write_cluster_analyse
from stepscope.export.cpu_operators import write_cpu_operators
from stepscope.export.cpu_usage import write_cpu_usage
from stepscope.export.dynamic_shapes import write_dynamic_shapes
from stepscope.export.flops import write_flops
from stepscope.export.gpu_operators import write_gpu_operators
from stepscope.export.hccl_raw import write_hccl_raw
from stepscope.export.host_info import write_host_info
from stepscope.export.job import Job
from stepscope.export.launches import write_launches
from stepscope.export.memory_usage import write_memory_usage
from stepscope.export.minddata import write_minddata
from stepscope.export.pipeline_raw import write_pipeline_raw
from stepscope.export.pipeline_summary import write_pipeline_summary
from stepscope.export.profiler_info import write_profiler_info
from stepscope.export.step_trace import write_step_trace
from stepscope.export.timeline import write_timeline
from stepscope.export.torch_pipeline import write_torch_pipeline
from stepscope.export.unrecorded import write_unrecorded
from stepscope.export.windows import write_window_originals

Exporter = Callable[[Job], None]

EXPORTERS: tuple[Exporter, ...] = (
    write_step_trace,
    write_hccl_raw,
    write_cluster_analyse,
    write_cpu_operators,
    write_launches,
    write_gpu_operators,
    write_timeline,
    write_host_info,
    write_minddata,
    write_torch_pipeline,
    write_cpu_usage,
    write_pipeline_raw,
    write_pipeline_summary,
    write_flops,
    write_memory_usage,
    write_dynamic_shapes,
    write_unrecorded,
    write_window_originals,
    write_ascend_ms,
    write_profiler_info,
)
"""The last tells when all others were done."""
