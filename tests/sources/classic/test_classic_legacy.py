"""Clusters of folders, as MindSpore 1.1 to 1.3 left them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.sources.discover import discover

TABLE, MAPPING = "hccl.json", "host_ips_mapping.txt"
HOSTS = {"10.0.0.1": (5, 3), "10.0.0.2": (2, 7)}
"""Address to the ranks of devices 0 and 1."""
TOTALS = "op_type,type_occurrences,total_compute_time\nMatMul,2,{total}\n"


def table(**changed: Any) -> str:
    """A rank table of two servers with two devices each."""
    devices = {
        address: [{"device_id": str(device), "rank_id": str(rank)} for device, rank in enumerate(ranks)]
        for address, ranks in HOSTS.items()
    }
    servers = [{"server_id": address, "device": listed} for address, listed in devices.items()]
    return json.dumps({"version": "1.0", "server_list": servers, "status": "completed"} | changed)


def cluster(root: Path, texts: dict[str, str | None] | None = None) -> Path:
    """A job of two hosts with two devices each; a device's operators took as many ms as its host and number say."""
    tables = {TABLE: table(), MAPPING: "10.0.0.2 2\n10.0.0.1 10\n"} | (texts or {})
    root.mkdir(exist_ok=True)
    for name, text in tables.items():
        if text is not None:
            (root / name).write_text(text)
    for host in (2, 10):
        folder = root / "cluster_profiler" / str(host) / "profiler"
        folder.mkdir(parents=True)
        for device in (0, 1):
            total = host * 10 + device
            (folder / f"cpu_op_type_info_{device}.csv").write_text(TOTALS.format(total=total))
    return root


def ranks(*paths: Path) -> dict[int, tuple[str, int, float]]:
    """Rank to host, device and total in ms of the only job there."""
    (run,) = stepscope.open_runs(paths)
    known = run.table("ranks").select("rank", "host", "device").collect()
    totals = run.table("operator_totals").select("rank", "total_ns").collect()
    joined = known.join(totals, on="rank").sort("rank")
    return {rank: (host, device, total / 1e6) for rank, host, device, total in joined.rows()}


def test_the_table_tells_ranks_and_the_mapping_hosts_in_one_job(tmp_path: Path) -> None:
    root = cluster(tmp_path / "run")

    assert ranks(root) == {
        2: ("2", 0, 20.0),
        3: ("10", 1, 101.0),
        5: ("10", 0, 100.0),
        7: ("2", 1, 21.0),
    }
    found = discover([root])
    assert found.problems == []


def test_ranks_are_the_same_whichever_folder_or_file_is_named(tmp_path: Path) -> None:
    folder = cluster(tmp_path / "run") / "cluster_profiler"

    assert sorted(ranks(folder)) == [2, 3, 5, 7]
    assert sorted(ranks(folder / "2")) == [2, 7]
    assert sorted(ranks(folder / "10" / "profiler")) == [3, 5]
    assert sorted(ranks(folder / "2", folder / "10")) == [2, 3, 5, 7]
    assert ranks(folder / "10" / "profiler" / "cpu_op_type_info_1.csv") == {3: ("10", 1, 101.0)}


def test_a_rank_table_of_any_name_counts(tmp_path: Path) -> None:
    root = cluster(tmp_path / "run", {TABLE: None, "ranks_of_monday.json": table(), "other.json": "{}"})

    assert sorted(ranks(root)) == [2, 3, 5, 7]


@pytest.mark.parametrize(
    "texts",
    [
        {TABLE: None},
        {TABLE: ""},
        {TABLE: table()[:90]},
        {TABLE: table(server_list=[{"server_id": "10.9.9.9", "device": [{"device_id": "0", "rank_id": "0"}]}])},
        {TABLE: table(server_list=[1, {"server_id": "10.0.0.1", "device": "x"}])},
        {MAPPING: None},
        {MAPPING: "no such line\n"},
    ],
)
def test_without_a_table_devices_count_host_by_host_in_order_with_a_note(
    tmp_path: Path, texts: dict[str, str | None]
) -> None:
    root = cluster(tmp_path / "run", texts)

    found = ranks(root)
    issues = stepscope.open_run(root).issues

    assert {rank: total for rank, (_, _, total) in found.items()} == {0: 20.0, 1: 21.0, 2: 100.0, 3: 101.0}
    assert issues["severity"].to_list() == ["note"] * 4
    assert issues["problem"].str.contains("becomes rank").all()


def test_a_device_that_the_table_lacks_gets_a_number_behind_the_others(tmp_path: Path) -> None:
    root = cluster(tmp_path / "run")
    (root / "cluster_profiler" / "2" / "profiler" / "cpu_op_type_info_4.csv").write_text(TOTALS.format(total=24))

    assert ranks(root)[8] == ("2", 4, 24.0)


def test_a_rank_that_the_table_gives_twice_is_that_of_the_first_device(tmp_path: Path) -> None:
    twice = table().replace('"rank_id": "7"', '"rank_id": "5"')

    found = ranks(cluster(tmp_path / "run", {TABLE: twice}))

    assert found[5] == ("10", 0, 100.0)
    assert found[6] == ("2", 1, 21.0)


NUMBERED = table().replace("10.0.0.1", "10").replace("10.0.0.2", "2")
"""The table as it is after addresses were taken from it: servers have the numbers of their folders."""


@pytest.mark.parametrize("mapping", ["10.0.0.2 2\n10.0.0.1 10\n", None])
def test_servers_may_have_the_numbers_of_their_folders(tmp_path: Path, mapping: str | None) -> None:
    found = ranks(cluster(tmp_path / "run", {TABLE: NUMBERED, MAPPING: mapping}))

    assert found == {2: ("2", 0, 20.0), 3: ("10", 1, 101.0), 5: ("10", 0, 100.0), 7: ("2", 1, 21.0)}


def test_servers_may_be_named_and_have_their_address_beside_the_name(tmp_path: Path) -> None:
    servers = json.loads(table(version="1.2"))
    for number, server in enumerate(servers["server_list"]):
        server |= {"host_ip": server["server_id"], "server_id": f"node_{number}"}

    assert sorted(ranks(cluster(tmp_path / "run", {TABLE: json.dumps(servers)}))) == [2, 3, 5, 7]


def test_the_table_gives_the_address_of_each_network_interface(tmp_path: Path) -> None:
    servers = json.loads(table())
    servers["server_list"][0]["device"][0]["device_ip"] = "192.168.1.8"

    run = stepscope.open_run(cluster(tmp_path / "run", {TABLE: json.dumps(servers)}))

    layout = run.analyse("parallel_layout").select("rank", "nic", "place_by").rows()
    assert layout[2] == (5, "192.168.1.8", "rank table")
    assert [nic for _, nic, _ in layout] == [None, None, "192.168.1.8", None]


def test_files_numbered_by_rank_are_taken_as_such(tmp_path: Path) -> None:
    """Ranks 4 to 7 on devices 0 to 3: the numbers cannot be devices, and are all ranks of the host."""
    devices = [{"device_id": str(n), "rank_id": str(n + 4)} for n in range(4)]
    root = cluster(tmp_path / "run", {TABLE: table(server_list=[{"server_id": "10.0.0.2", "device": devices}])})
    folder = root / "cluster_profiler" / "2" / "profiler"
    for number in (0, 1):
        (folder / f"cpu_op_type_info_{number}.csv").rename(folder / f"cpu_op_type_info_{number + 5}.csv")

    found = ranks(root / "cluster_profiler" / "2")

    assert found == {5: ("2", 1, 20.0), 6: ("2", 2, 21.0)}


def test_a_profile_that_states_another_rank_than_the_table_is_reported(tmp_path: Path) -> None:
    root = cluster(tmp_path / "run")
    stated = root / "cluster_profiler" / "10" / "profiler" / "profiler_info_1.json"
    stated.write_text(json.dumps({"rank_id": "6"}))

    (issue,) = stepscope.open_run(root).issues.filter(severity="warning").to_dicts()

    assert issue["file"].endswith("profiler_info_1.json")
    assert "gives rank 6, but the rank table gives rank 3 to device 1 of host 10" in issue["problem"]
    assert "rank table is that of this job" in issue["remedy"]


def test_a_sample_of_two_hosts_is_one_job_of_four_ranks(shared: Path) -> None:
    run = stepscope.open_run(shared / "data/mindspore/synthetic_legacy_r13")
    severities = run.issues["severity"].unique().to_list()

    known = run.table("ranks").select("rank", "host", "device", "world_size").collect().sort("rank")
    assert known.rows() == [(0, "1", 0, 4), (1, "1", 1, 4), (2, "2", 0, 4), (3, "2", 1, 4)]
    assert set(severities) <= {"note"}
