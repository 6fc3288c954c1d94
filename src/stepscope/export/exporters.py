"""All kinds of output, in the order in which they are made. A new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.export.ascend_ms import write_ascend_ms
from stepscope.export.classic.cluster_analyse import write_cluster_analyse
from stepscope.export.classic.cpu_operators import write_cpu_operators
from stepscope.export.classic.cpu_usage import write_cpu_usage
from stepscope.export.classic.dynamic_shapes import write_dynamic_shapes
from stepscope.export.classic.flops import write_flops
from stepscope.export.classic.framework_files import write_minddata, write_window_originals
from stepscope.export.classic.gpu_operators import write_gpu_operators
from stepscope.export.classic.hccl_raw import write_hccl_raw
from stepscope.export.classic.host_info import write_host_info
from stepscope.export.classic.launches import write_launches
from stepscope.export.classic.loader_pipeline import write_loader_pipeline
from stepscope.export.classic.memory_usage import write_memory_usage
from stepscope.export.classic.pipeline_raw import write_pipeline_raw
from stepscope.export.classic.pipeline_summary import write_pipeline_summary
from stepscope.export.classic.profiler_info import write_profiler_info
from stepscope.export.classic.step_trace import write_step_trace
from stepscope.export.classic.timeline import write_timeline
from stepscope.export.rank_export import RankExport

EXPORTERS: tuple[Callable[[RankExport], None], ...] = (
    write_step_trace,
    write_hccl_raw,
    write_cluster_analyse,
    write_cpu_operators,
    write_launches,
    write_gpu_operators,
    write_timeline,
    write_host_info,
    write_minddata,
    write_loader_pipeline,
    write_cpu_usage,
    write_pipeline_raw,
    write_pipeline_summary,
    write_flops,
    write_memory_usage,
    write_dynamic_shapes,
    write_window_originals,
    write_ascend_ms,
    write_profiler_info,
)
"""The last one states when all others were done."""
