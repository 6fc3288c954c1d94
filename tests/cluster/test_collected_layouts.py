"""Where files go, and rank tables without addresses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stepscope import open_run
from stepscope.cli import main
from stepscope.cluster.layout import Seats, choose, plan_all
from stepscope.cluster.listing import Listing, Wanted
from stepscope.cluster.names import anonymous, problem_of
from stepscope.cluster.rank_tables import anonymous_table, seats
from tests.cli.calling import EXAMPLE
from tests.cluster.profiles import content

TABLE = {
    "version": "1.0",
    "server_list": [
        {
            "server_id": "node-a",
            "host_ip": "10.0.0.1",
            "device": [{"device_id": "0", "device_ip": "192.168.1.7", "rank_id": "4", "super_device_id": "77"}],
            "host_nic_ip": "reserve",
            "note": "eth0 of node-a at [fe80::1], not of node-ab",
        }
    ],
    "status": "completed",
}


def listing(*names: str) -> Listing:
    return Listing(
        [Wanted(f"/x/{name}", tuple(name.split("/")[:1]), tuple(name.split("/")[1:]), 1, 1) for name in names]
    )


def test_a_rank_table_without_addresses() -> None:
    table = json.loads(anonymous_table(TABLE, {"node-a": 3}))

    (server,) = table["server_list"]
    (device,) = server["device"]
    assert (server["server_id"], server["host_ip"], server["host_nic_ip"]) == ("3", "3", "reserve")
    assert server["note"] == "eth0 of 3 at [3], not of node-ab"
    assert device == {"device_id": "0", "device_ip": "3-0", "rank_id": "4", "super_device_id": "77"}
    assert (table["version"], table["status"]) == ("1.0", "completed")


def test_addresses_of_strangers_are_hidden() -> None:
    text = anonymous_table(TABLE, {"other": 1})

    assert b"node-a" not in text.replace(b"node-ab", b"").replace(b"of node-a at", b"")
    assert b"10.0.0.1" not in text
    assert b"192.168" not in text


def test_devices_and_ranks_of_hosts() -> None:
    assert seats(TABLE, {"node-a": 3}) == {3: Seats(frozenset({0}), frozenset({4}))}


@pytest.mark.parametrize(
    ("files", "known", "layout"),
    [
        ({1: ["d0/framework_raw_0.csv"], 2: ["d0/framework_raw_0.csv", "d0/flops_0.txt"]}, {}, "guide"),
        ({1: ["d0/framework_raw_0.csv"], 2: ["d0/framework_raw_0.csv"]}, {}, "flat"),  # one shared directory
        ({1: ["d0/framework_raw_0.csv", "d0/profiler_info_0.json"], 2: ["d0/framework_raw_0.csv"]}, {}, "flat"),
        ({1: ["p/framework_raw_0.csv"], 2: ["p/framework_raw_1.csv"]}, {}, "flat"),
        ({1: ["p/framework_raw_4.csv"]}, {1: Seats(frozenset({0}), frozenset({4}))}, "flat"),
        ({1: ["p/framework_raw_0.csv"]}, {1: Seats(frozenset({0}), frozenset({4}))}, "guide"),
        ({1: ["p/profiler_info_0.json"], 2: ["p/profiler_info_0.json"]}, {}, "flat"),
        ({1: ["rank0.json"]}, {}, "flat"),
    ],
)
def test_the_layout_is_chosen_by_what_is_found(files, known, layout) -> None:
    assert choose({host: listing(*names) for host, names in files.items()}, known) == layout


def test_two_files_never_have_one_place() -> None:
    files = listing("a/profiler/flops_0.txt", "b/profiler/flops_0.txt", "c/trace.json")

    made = plan_all({2: files}, "guide", {2: ()})[2]

    assert [target for _, target in made.targets] == [
        ("cluster_profiler", "2", "profiler", "flops_0.txt"),
        ("2", "c", "trace.json"),
    ]
    assert made.conflicts.named == [
        ("/x/b/profiler/flops_0.txt", "has the place of /x/a/profiler/flops_0.txt of host 2, which is kept")
    ]


def test_ranks_of_all_hosts_come_together_in_one_profile() -> None:
    one = listing("run/profiler/flops_0.txt", "run/profiler/step_trace_point_info.json", "old/profiler/flops_0.txt")
    two = listing("run/profiler/flops_1.txt", "run/profiler/notes.txt", "old/profiler/flops_0.txt")
    two.files[2] = replace(two.files[2], size=7)

    made = plan_all({1: one, 2: two}, "flat", {1: (), 2: ()})

    assert [target for _, target in made[1].targets] == [file.names for file in one.files]
    assert [target for _, target in made[2].targets] == [
        ("run", "profiler", "flops_1.txt"),
        ("run", "profiler", "notes.txt"),
        ("2", "old", "profiler", "flops_0.txt"),
    ]


def test_hosts_with_the_same_files_are_noticed_and_nothing_is_lost() -> None:
    files = listing("run/profiler/flops_0.txt", "run/profiler/flops_1.txt")

    made = plan_all({1: files, 2: files}, "flat", {1: (), 2: ()})

    assert (made[1].twin, made[2].twin) == (None, 1)
    assert [target for _, target in made[2].targets] == [("2", *file.names) for file in files.files]


@pytest.mark.parametrize("name", [".stepscope-collect", "1", "cluster_profiler"])
def test_a_profile_never_takes_our_own_places(name: str) -> None:
    made = plan_all({2: listing(f"{name}/flops_0.txt")}, "flat", {2: ()})

    assert [target for _, target in made[2].targets] == [("2", name, "flops_0.txt")]


@pytest.mark.parametrize(
    ("name", "as_id"),
    [
        ("node-a_12_20260101000000000_ascend_ms", "7_12_20260101000000000_ascend_ms"),
        ("node-a_12.1700000000000.pt.trace.json.gz", "7_12.1700000000000.pt.trace.json.gz"),
        ("node-ab_12_20260101000000000_ascend_ms", "node-ab_12_20260101000000000_ascend_ms"),
        ("node-a", "node-a"),
    ],
)
def test_names_of_hosts_become_ids_where_profilers_put_them(name: str, as_id: str) -> None:
    assert anonymous(name, {"node-a"}, 7) == as_id


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\\b", "a\0", "a\nb", "\x1b[2J", "\udcff", "x" * 256])
def test_names_that_are_not_taken(name: str) -> None:
    assert problem_of(name) is not None


def test_a_collected_legacy_cluster_gives_the_answers_of_its_origin(tmp_path: Path, shared: Path, capfd) -> None:
    origin = shared / "data/mindspore/synthetic_legacy_r13"
    hosts = [
        {"server_id": f"10.0.0.{k}", "name": f"h{k}", "path": str(origin / "cluster_profiler" / str(k))} for k in (1, 2)
    ]
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": hosts}))
    words = ["--hosts", tmp_path / "hosts.json", "--rank-table", origin / "hccl.json", "--source", "profiler"]

    assert main(["collect", *map(str, words), "-o", str(tmp_path / "run"), "--keep-gb", "0"]) == 0

    there = {name: text for name, text in content(tmp_path / "run").items() if name != "host_ips_mapping.txt"}
    files = {name: text for name, text in content(origin).items() if name.startswith("cluster_profiler/")}
    assert {name: text for name, text in there.items() if name != "hccl.json"} == files
    assert b"10.0.0" not in there["hccl.json"] and b"192." not in there["hccl.json"]
    whole, copy = open_run(origin), open_run(tmp_path / "run")
    for question in ("breakdown", "kernel_totals"):
        assert copy.analyse(question).equals(whole.analyse(question))
    assert [rank.facts["host"] for rank in copy.ranks] == [rank.facts["host"] for rank in whole.ranks]

    shutil.copytree(tmp_path / "run", tmp_path / "shared")
    (tmp_path / "shared" / "host_ips_mapping.txt").unlink()
    given = open_run(tmp_path / "shared")
    assert [(rank.rank, rank.facts["host"]) for rank in given.ranks] == [(0, "1"), (1, "1"), (2, "2"), (3, "2")]


def test_a_rank_table_beside_recordings_is_no_unread_file(tmp_path: Path) -> None:
    (tmp_path / "hccl.json").write_text(json.dumps(TABLE))
    for trace in Path(EXAMPLE).glob("rank-*"):
        shutil.copy(trace, tmp_path)

    assert [issue.file for issue in open_run(tmp_path).unread] == []


@pytest.mark.parametrize("words", [[], ["--summaries"]])
def test_recordings_of_a_collected_host_have_its_id_as_their_host(tmp_path: Path, capfd, words: list[str]) -> None:
    for number, host in enumerate(("node-a", "node-b")):
        trace = {"distributedInfo": {"rank": number, "world_size": 2}, "hostname": host, "traceEvents": [EVENT]}
        folder = tmp_path / host / "run"
        folder.mkdir(parents=True)
        (folder / f"rank-{number}.1.pt.trace.json").write_text(json.dumps(trace))
    hosts = [
        {"name": f"10.0.0.{number}", "path": str(tmp_path / name)} for number, name in ((1, "node-a"), (2, "node-b"))
    ]
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": hosts}))
    call = ["collect", "--hosts", tmp_path / "hosts.json", "--source", "run", "-o", tmp_path / "out", "--keep-gb", 0]

    assert main([*map(str, call), *words]) == 0

    assert [(rank.rank, rank.facts["host"]) for rank in open_run(tmp_path / "out").ranks] == [(0, "1"), (1, "2")]


EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10, "dur": 5}
