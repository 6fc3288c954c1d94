"""`minddata_pipeline_raw`: the input pipeline as a tree, with the queue behind each operator."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stepscope.export.classic.framework_files import PIPELINE
from stepscope.export.formatting import csv_text
from stepscope.export.rank_export import RankExport

HEADER = (
    "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    "output_queue_usage_rate,sample_interval,parent_id,children_id"
)


@dataclass
class DatasetOperator:
    """One operator of an input pipeline.

    Args:
        number: Its id, unique in the pipeline.
        kind: Its type, e.g. `BatchOp`.
        workers: Threads or processes.
        children: Ids of the operators that feed it.
        sizes: Samples of the queue behind it; empty without one.
        length: Capacity of that queue.
        parent: Id of the operator that it feeds; None for the last one.
    """

    number: int
    kind: str
    workers: int
    children: list[int]
    sizes: list[int] = field(default_factory=list)
    length: int = 0
    parent: int | None = None

    @property
    def average(self) -> float | None:
        """Mean size of its queue; None without one."""
        return sum(self.sizes) / len(self.sizes) if self.sizes else None

    @property
    def empty(self) -> float | None:
        """Share of the samples in which its queue was empty, 0 to 1; None without one."""
        return self.sizes.count(0) / len(self.sizes) if self.sizes else None

    @property
    def usage(self) -> float | None:
        """Share of its queue that was full, 0 to 1; None without one."""
        return None if self.average is None or not self.length else self.average / self.length


def read_pipeline(export: RankExport) -> tuple[list[DatasetOperator], int]:
    """The pipeline as `pipeline_profiling` of this export has it, from the root to the leaves, and the interval in ms.

    Raises:
        ValueError: If the file is damaged.
    """
    path = export.directory / f"{PIPELINE}_{export.rank}.json"
    if path.name not in export.written:
        return [], 0
    content = json.loads(path.read_bytes())
    stages = {one.number: one for one in map(_operator, content["op_info"])}
    for one in stages.values():
        for child in one.children:
            if child in stages:
                stages[child].parent = one.number
    order: list[DatasetOperator] = []
    open_ = sorted((n for n, one in stages.items() if one.parent is None), reverse=True)
    while open_:
        number = open_.pop()
        if number in stages:  # a damaged tree may name an operator twice
            order.append(stages.pop(number))
            open_.extend(reversed(order[-1].children))
    return order, int(content.get("sampling_interval") or 0)


def _operator(entry: dict[str, Any]) -> DatasetOperator:
    queue = (entry.get("metrics") or {}).get("output_queue") or {}
    return DatasetOperator(
        int(entry["op_id"]),
        str(entry["op_type"]),
        int(entry.get("num_workers") or 1),
        [int(child) for child in entry.get("children") or []],
        [int(size) for size in queue.get("size") or []],
        int(queue.get("length") or 0),
    )


def write_pipeline_raw(export: RankExport) -> None:
    """Write it if a pipeline was recorded."""
    name = f"minddata_pipeline_raw_{export.rank}.csv"
    stages, interval = read_pipeline(export)
    if stages:
        export.write(name, csv_text(HEADER, [_row(stage, interval) for stage in stages]))
    else:
        nothing = "no batches and no pipeline were recorded (data_process is off, or no loader is known)"
        export.leave_out(name, export.left_out.get(f"{PIPELINE}_{export.rank}.json (operators)", nothing))


def _row(stage: DatasetOperator, interval: int) -> tuple[object, ...]:
    queue: tuple[object, ...] = (None, None, None, None)
    if stage.average is not None:
        queue = (str(stage.sizes), stage.average, stage.length, stage.usage)
    children = str(stage.children) if stage.children else None
    return (stage.number, stage.kind, stage.workers, *queue, interval, stage.parent, children)
