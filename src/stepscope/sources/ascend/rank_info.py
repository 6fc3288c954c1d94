"""Who recorded, where and how: the JSON files of a recording and the names of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.json_values import as_index, json_text, list_of, object_of
from stepscope.paths import shown
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_files import (
    DATABASE,
    OUTPUT,
    PROFILER_INFO,
    RANK_DIRECTORY,
    ExportFiles,
)
from stepscope.sources.base import Input, Sink
from stepscope.sources.plausible import FIRST_EPOCH_NS
from stepscope.sources.rank_tables import differences, is_named, place_of
from stepscope.sources.side_files import read_object
from stepscope.tables import RANKS


@dataclass
class RankInfo:
    """One row of `ranks` in the making."""

    format: str
    rank: int | None = None
    rank_origin: str | None = None
    world_size: int | None = None
    host: str | None = None
    process: int | None = None
    device_kind: str | None = "npu"
    device: int | None = None
    device_name: str | None = None
    nic: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    mode: str | None = None
    ai_cores: int | None = None
    vector_cores: int | None = None
    nominal_clock_mhz: float | None = None
    backend: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    parallelism: dict[str, Any] = field(default_factory=dict)

    def frame(self, span: tuple[int, int] | None) -> pl.DataFrame:
        """The row of `ranks`; `span` is the first and last time of the recording, which may not be since the epoch."""
        facts = {name: getattr(self, name) for name in RANKS.schema if hasattr(self, name)}
        facts |= {name: json_text(facts[name]) for name in ("options", "environment", "parallelism")}
        is_epoch = span is not None and span[0] >= FIRST_EPOCH_NS  # others count from the start of a machine
        facts["start_ns"], facts["end_ns"] = span if span is not None and is_epoch else (None, None)
        return RANKS.unchecked(**{name: [value] for name, value in facts.items()})

    @property
    def activities(self) -> str:
        """The recorded activities, e.g. `CPU NPU`; empty if the options do not have them."""
        return str(self.options.get("activities") or "")

    def settle_rank(self, content: object, file: Path | None) -> None:
        """Take the first recorded rank: from the content, otherwise from a file's name."""
        if self.rank is not None:
            return
        if (stated := as_index(content)) is not None:
            self.rank, self.rank_origin = stated, "content"
            return
        match = file and (PROFILER_INFO.match(file.name) or DATABASE.search(file.name))
        digits = next(filter(None, match.groups()), None) if match else None
        if (named := as_index(digits)) is not None:
            self.rank, self.rank_origin = named, "file name"


def read_rank_info(files: ExportFiles, source: str, sink: Sink) -> tuple[RankInfo, Groups]:
    """Facts from the JSON files and names; a database may add to them."""
    identity = RankInfo(format=source)
    info, metadata, device = (
        read_object(file, sink, "warning") or {} for file in (files.profiler_info, files.metadata, files.device_info)
    )
    identity.settle_rank(info.get("rank_id"), files.profiler_info)
    identity.settle_rank(object_of(metadata, "distributed_args").get("rank"), files.database)
    identity.settle_rank(device.get("rank_id"), None)
    _read_directory_name(identity, files)
    _read_profiler_info(identity, info)
    groups = read_metadata(identity, metadata)
    _read_device_info(identity, device)
    return identity, groups


def take_rank_table(identity: RankInfo, item: Input, sink: Sink) -> None:
    """Take from the rank table of an input, once all else is known, what the recording does not state of host and
    device."""
    table = next(filter(is_named, item.files), None)
    if table is None or identity.rank is None:
        return
    place = place_of(table, identity.rank, identity.world_size, sink)
    if place is None:
        return
    for problem in differences(table, place, identity.host, identity.device):
        remedy = "Check that the rank table is that of this job; what the recording says is used"
        sink.issue("warning", table, problem, remedy)
    identity.host = identity.host or (place.host and shown(place.host))
    identity.device = place.device if identity.device is None else identity.device
    identity.nic = place.nic and shown(place.nic)


def read_metadata(identity: RankInfo, metadata: Mapping[str, Any]) -> Groups:
    """Take environment, parallel sizes and groups from what profiler_metadata.json or META_DATA holds."""
    identity.environment = object_of(metadata, "ENV_VARIABLES") or identity.environment
    sizes = object_of(metadata, "distributed_args")
    if pipeline := object_of(metadata, "pp_info"):
        sizes = {**sizes, "pp_info": pipeline}
    identity.parallelism = sizes or identity.parallelism
    identity.world_size = as_index(sizes.get("world_size")) or identity.world_size
    return Groups.from_metadata(metadata.get("parallel_group_info"))


def _read_directory_name(identity: RankInfo, files: ExportFiles) -> None:
    root = files.path.parent if files.path.name == OUTPUT or files.path.is_file() else files.path
    for directory in (root, root.parent):
        if match := RANK_DIRECTORY.match(directory.name):
            if match["rank"] is None:
                identity.host = shown(match["host"])
                identity.process = int(match["process"][:18])
            elif identity.rank is None:
                identity.rank, identity.rank_origin = int(match["rank"]), "file name"
            identity.framework = "pytorch" if match["framework"] == "pt" else "mindspore"
            return


def _read_profiler_info(identity: RankInfo, info: Mapping[str, Any]) -> None:
    version = info.get("torch_npu_version") or info.get("ms_version")
    identity.framework_version = version if isinstance(version, str) else None
    if "ms_version" in info:
        identity.framework = "mindspore"
    elif identity.framework is None and "torch_npu_version" in info:
        identity.framework = "pytorch"
    config = object_of(info, "config")
    identity.options = {**object_of(config, "common_config"), **object_of(config, "experimental_config")}
    if isinstance(info.get("cann_version"), str):
        identity.options["cann_version"] = info["cann_version"]
    identity.world_size = as_index(info.get("rank_size")) or identity.world_size
    _read_own(identity, object_of(info, "stepscope"))


def _read_own(identity: RankInfo, own: Mapping[str, Any]) -> None:
    """Take the facts of our own export, whose rank need not have an Ascend device."""
    for name in ("framework", "framework_version", "mode", "device_kind", "device_name", "host", "backend"):
        if isinstance(own.get(name), str):
            setattr(identity, name, shown(own[name]))
    for name in ("process", "device"):
        if (number := as_index(own.get(name))) is not None:
            setattr(identity, name, number)


def _read_device_info(identity: RankInfo, content: Mapping[str, Any]) -> None:
    devices = list_of(content, "DeviceInfo")
    first = devices[0] if devices else None
    if not isinstance(first, Mapping) or not first:
        return
    identity.device = as_index(first.get("id"))
    numbers = {key: as_index(first.get(key)) for key in ("ai_core_num", "aiv_num", "aic_frequency")}
    identity.options["device_info"] = {key: value for key, value in numbers.items() if value is not None}
    identity.ai_cores, identity.vector_cores = numbers["ai_core_num"], numbers["aiv_num"]
    clock = numbers["aic_frequency"]
    identity.nominal_clock_mhz = None if clock is None else float(clock)
