"""Rank tables of any template, and what they tell of Ascend exports beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_files import kernel_row, rank_directory, write_kernels

from stepscope import Run, open_run
from stepscope.sources import rank_tables

TWO = [("10.0.0.1", 0, 4, "192.1.1.4"), ("10.0.0.2", 1, 5, "192.1.1.5")]
"""Host, rank, device and address."""

BY_SERVER = {
    "server_list": [
        {"server_id": host, "device": [{"device_id": str(device), "device_ip": nic, "rank_id": str(rank)}]}
        for host, rank, device, nic in TWO
    ]
}
OTHER_KEYS = {
    "server_list": [
        {"server_id": host, "devices": [{"deviceId": device, "device_ip": nic, "rankid": rank}]}
        for host, rank, device, nic in TWO
    ]
}
OF_INSTANCES = {
    "group_list": [
        {
            "instance_list": [
                {"server_id": host, "rank_id": str(rank), "devices": [{"device_id": str(device), "device_ip": nic}]}
                for host, rank, device, nic in TWO
            ]
        }
    ]
}
BY_RANK = {
    "rank_list": [
        {
            **{"rank_id": rank, "local_id": device, "device_id": device},
            "level_list": [
                {"net_layer": 0, "rank_addr_list": [{"addr": "172.16.0.1"}]},
                {"net_layer": 1, "rank_addr_list": [{"addr": nic}]},
            ],
        }
        for _, rank, device, nic in TWO
    ]
}


def write(folder: Path, table: dict[str, Any], version: str = "1.0", name: str = "hccl.json") -> Path:
    file = folder / name
    file.write_text(json.dumps({"version": version, "status": "completed", **table}))
    return file


@pytest.mark.parametrize(
    "table", [BY_SERVER, OTHER_KEYS, OF_INSTANCES, {"server_group_list": [BY_SERVER]}, {**BY_SERVER, "rank_list": [1]}]
)
def test_templates_with_hosts(table: dict[str, Any], tmp_path: Path) -> None:
    file = write(tmp_path, table)

    found = rank_tables.places(file)

    assert rank_tables.is_rank_table(file)
    assert [(one.host, one.rank, one.device, one.nic) for one in found] == TWO


def test_a_template_by_rank_has_no_hosts_and_the_address_between_hosts(tmp_path: Path) -> None:
    found = rank_tables.places(write(tmp_path, BY_RANK, "2.0"))

    assert [(one.host, one.rank, one.device, one.nic) for one in found] == [(None, *rest) for _, *rest in TWO]


def test_ranks_of_instances_with_several_devices_are_not_guessed(tmp_path: Path) -> None:
    devices = [{"device_id": str(number)} for number in (5, 6)]
    file = write(
        tmp_path, {"group_list": [{"instance_list": [{"server_id": "a", "rank_id": "0", "devices": devices}]}]}
    )

    assert not rank_tables.places(file)
    assert rank_tables.unknown(file) == "lists no device with a rank"


def job(folder: Path, *, stated: bool = False) -> Path:
    """Two ranks; without their host and device unless these are stated (device 3)."""
    for rank in range(2):
        name = f"{'host_a_4242' if stated else f'rank-{rank}'}_2025100916300000{rank}_ascend_pt"
        output = rank_directory(folder, name, rank)
        rows = [row if stated else row.replace(",3,", ",N/A,", 1) for row in (kernel_row(5, 1000), kernel_row(6, 2000))]
        write_kernels(output, rows=rows)
        metadata = output.parent / "profiler_metadata.json"
        metadata.write_text(json.dumps({"distributed_args": {"world_size": 2, "rank": rank}}))
        if not stated:
            shutil.rmtree(output.parent / "PROF_000001_20251009163000000_ABC")
    return folder


def places(run: Run) -> list[tuple[Any, ...]]:
    return run.analyse("parallel_layout").select("rank", "host", "device", "nic").rows()


def problems(run: Run) -> set[str]:
    return set(run.issues.filter(pl.col("severity") == "warning")["problem"])


@pytest.mark.parametrize("name", ["hccl.json", "hccl_2p_01_10.0.0.1.json", "rank_table_2p.json"])
def test_a_table_beside_ascend_exports_gives_host_and_device(name: str, tmp_path: Path) -> None:
    write(job(tmp_path), BY_SERVER, name=name)

    run = open_run(tmp_path)

    assert places(run) == [(rank, host, device, nic) for host, rank, device, nic in TWO]
    assert not problems(run)
    assert not run.issues["file"].str.contains(name, literal=True).any()


def test_a_table_that_contradicts_the_recordings_is_named(tmp_path: Path) -> None:
    write(job(tmp_path, stated=True), BY_SERVER)

    run = open_run(tmp_path)

    assert [row[1:3] for row in places(run)] == [("host_a", 3)] * 2
    assert problems(run) == {
        f"gives device {device} to rank {rank}, but its recording is of device 3" for _, rank, device, _ in TWO
    }


def test_a_table_of_another_job_or_an_unknown_version_is_named(tmp_path: Path) -> None:
    other, newer = tmp_path / "other", tmp_path / "newer"
    other.mkdir()
    newer.mkdir()
    write(job(other), {"server_list": BY_SERVER["server_list"][:1]})
    write(job(newer), {"pods": []}, "9.9")

    assert any("lists 1 ranks, " in one for one in problems(open_run(other)))
    assert any("version 9.9, which is not known" in one for one in problems(open_run(newer)))
    assert places(open_run(newer)) == [(0, None, None, None), (1, None, None, None)]
