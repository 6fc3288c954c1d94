"""Graphs with their parallel strategy, as MindSpore writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def value(content: Any) -> dict[str, Any]:
    """The value of an attribute."""
    if isinstance(content, (list, tuple)):
        return {"dtype": "DT_TUPLE", "values": [value(one) for one in content]}
    if isinstance(content, int):
        return {"dtype": "DT_INT64", "intVal": str(content)}
    return {"dtype": "DT_STRING", "strVal": content}


def node(
    name: str,
    kind: str,
    inputs: Sequence[str] = (),
    *,
    instance: str = "",
    shape: Sequence[int] = (),
    **attributes: Any,
) -> dict[str, Any]:
    """A node of the graph; keywords are attributes."""
    tensor = {"elemType": "DT_FLOAT16", "shape": {"dim": [{"size": str(size)} for size in shape]}}
    return {
        "name": name,
        "opType": kind,
        "scope": "Default/net",
        "fullName": f"Default/net/{kind}-op{name}",
        "instanceName": instance,
        "input": [{"name": one, "type": "DATA_EDGE"} for one in inputs],
        "attribute": [{"name": key, "value": value(content)} for key, content in attributes.items()],
        "outputType": {"dataType": "DT_TENSOR", "tensorType": tensor} if shape else {},
    }


def write_graph(
    folder: Path,
    rank: int,
    nodes: Sequence[Mapping[str, Any]],
    *,
    stage: int = 0,
    stages: Sequence[Sequence[int]] = (),
    mode: str = "semi_auto_parallel",
    stated_rank: int | None = None,
    parameters: Sequence[str] = (),
) -> Path:
    """Write the file of a rank."""
    folder.mkdir(parents=True, exist_ok=True)
    devices = [{"dim": [{"size": str(one)} for one in ranks]} for ranks in stages]
    config = {"rankId": rank if stated_rank is None else stated_rank, "stageId": stage, "parallelType": mode}
    graph = {"node": list(nodes), "parameters": [{"name": name} for name in parameters], "constVals": [{"key": "cst1"}]}
    path = folder / f"parallel_strategy_{rank}.json"
    path.write_text(json.dumps({"config": {**config, "stageDevices": devices}, "graph": graph}))
    return path


def two_stages(folder: Path, *, tag: int = 0) -> None:
    """Four ranks in two stages: a divided product and a redistribution in the first one, which sends to the second."""
    for rank in range(4):
        stage, group = rank // 2, f"pp-{rank % 2}"
        first = [
            node("1", "GetNext", shape=(32, 64)),
            node(
                "2", "MatMul", ("1", "w"), shape=(32, 64), in_strategy=((2, 1), (1, 1)), gen_strategy=((2, 1), (1, 2))
            ),
            node("3", "AllGather", ("2",), instance="redistribution_op", group="tp-0", group_ranks="0-1"),
            node("4", "Send", ("3",), group=group, sr_tag=tag, dest_rank=1),
        ]
        second = [
            node("1", "Receive", group=group, sr_tag=0, src_rank=0, shape=(32, 64)),
            node("2", "Conv2D", ("1",), group=rank, in_strategy=((1, 1),)),
            node("3", "AllReduce", ("2", "gone"), instance="grad_mirror_net", group="dp-1"),
        ]
        nodes, parameters = (first, ("w",)) if stage == 0 else (second, ())
        write_graph(folder, rank, nodes, stage=stage, stages=((0, 1), (2, 3)), parameters=parameters)
