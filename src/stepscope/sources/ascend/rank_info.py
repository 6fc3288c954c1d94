"""Who recorded, where and how: the JSON files of a recording and the names of its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.json_values import as_index, json_text, object_of
from stepscope.paths import shown
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_files import (
    DATABASE,
    OUTPUT,
    PROFILER_INFO,
    RANK_DIRECTORY,
    ExportFiles,
)
from stepscope.sources.side_files import read_object
from stepscope.tables import RANKS

if TYPE_CHECKING:
    from stepscope.sources.base import Sink


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
    framework: str | None = None
    framework_version: str | None = None
    mode: str | None = None
    backend: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    parallelism: dict[str, Any] = field(default_factory=dict)

    def frame(self, start_ns: int | None, end_ns: int | None) -> pl.DataFrame:
        """The row of `ranks`."""
        texts = {
            name: json_text(value)
            for name, value in (
                ("options", self.options),
                ("environment", self.environment),
                ("parallelism", self.parallelism),
            )
        }
        single = {
            name: [getattr(self, name)] for name in RANKS.stored_schema if hasattr(self, name) and name not in texts
        }
        times = {"start_ns": [start_ns], "end_ns": [end_ns]}
        columns: dict[str, Any] = {**single, **{name: [text] for name, text in texts.items()}, **times}
        return RANKS.unchecked(rank=[self.rank], **columns)

    def settle_rank(self, content: object, file: Path | None) -> None:
        """Take the first recorded rank: from the content, otherwise from a file's name."""
        if self.rank is not None:
            return
        if (stated := as_index(content)) is not None:
            self.rank, self.rank_origin = stated, "content"
            return
        match = file and (PROFILER_INFO.match(file.name) or DATABASE.search(file.name))
        digits = next((group for group in match.groups() if group), None) if match else None
        if digits and (named := as_index(digits)) is not None:
            self.rank, self.rank_origin = named, "file name"


def read_rank_info(files: ExportFiles, source: str, sink: Sink) -> tuple[RankInfo, Groups]:
    """Facts from the JSON files and names; a database may add to them."""
    identity = RankInfo(format=source)
    info = _read(files.profiler_info, sink)
    metadata = _read(files.metadata, sink)
    device = _read(files.device_info, sink)

    identity.settle_rank(info.get("rank_id"), files.profiler_info)
    identity.settle_rank(object_of(metadata, "distributed_args").get("rank"), files.database)
    identity.settle_rank(device.get("rank_id"), None)
    _read_directory_name(identity, files)
    _read_profiler_info(identity, info)
    groups = read_metadata(identity, metadata)
    _read_device_info(identity, device)
    return identity, groups


def read_metadata(identity: RankInfo, metadata: Mapping[str, Any]) -> Groups:
    """Take environment, parallel sizes and groups from what profiler_metadata.json or META_DATA holds."""
    identity.environment = object_of(metadata, "ENV_VARIABLES") or identity.environment
    sizes = dict(object_of(metadata, "distributed_args"))
    pipeline = object_of(metadata, "pp_info")
    if pipeline:
        sizes["pp_info"] = dict(pipeline)
    identity.parallelism = sizes or identity.parallelism
    world = as_index(sizes.get("world_size"))
    identity.world_size = world if world else identity.world_size
    return Groups.from_metadata(metadata.get("parallel_group_info"))


def _read(file: Path | None, sink: Sink) -> dict[str, Any]:
    return read_object(file, sink, "warning") or {}


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
    if not info:
        return
    version = info.get("torch_npu_version") or info.get("ms_version")
    identity.framework_version = version if isinstance(version, str) else None
    if "ms_version" in info:
        identity.framework = "mindspore"
    elif identity.framework is None and "torch_npu_version" in info:
        identity.framework = "pytorch"
    identity.options = {
        **object_of(info, "config", "common_config"),
        **object_of(info, "config", "experimental_config"),
    }
    if isinstance(info.get("cann_version"), str):
        identity.options["cann_version"] = info["cann_version"]
    identity.world_size = as_index(info.get("rank_size")) or identity.world_size
    _read_own(identity, object_of(info, "stepscope"))


def _read_own(identity: RankInfo, told: Mapping[str, Any]) -> None:
    """Take the facts of our own export, whose rank need not have an Ascend device."""
    for name in ("framework", "framework_version", "mode", "device_kind", "device_name", "host", "backend"):
        if isinstance(told.get(name), str):
            setattr(identity, name, shown(told[name]))
    for name in ("process", "device"):
        if (number := as_index(told.get(name))) is not None:
            setattr(identity, name, number)


def _read_device_info(identity: RankInfo, content: Mapping[str, Any]) -> None:
    devices = content.get("DeviceInfo")
    first = devices[0] if isinstance(devices, list) and devices else {}
    if not isinstance(first, Mapping) or not first:
        return
    identity.device = as_index(first.get("id"))
    numbers = {key: as_index(first.get(key)) for key in ("ai_core_num", "aiv_num", "aic_frequency")}
    identity.options["device_info"] = {key: value for key, value in numbers.items() if value is not None}
