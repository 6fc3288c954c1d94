"""Collecting without SSH: directories of this machine, and commands that copy."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli import main
from tests.cluster.profiles import content, write_devices

COPY = "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2], symlinks=True)"


def collected(
    capture: pytest.CaptureFixture[str], hosts: list[dict[str, Any]], tmp_path: Path, *words: object, code: int = 0
) -> Any:
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps({"hosts": hosts}))
    output = ["-o", str(tmp_path / "run"), "--keep-gb", "0", "--json"]
    assert main(["collect", "--hosts", str(file), *map(str, words), *output]) == code
    return json.loads(capture.readouterr().out)


def test_mounted_shares_arrive_flat_under_their_own_names(tmp_path: Path, capfd) -> None:
    for name in "ab":
        rank = tmp_path / name / "out" / f"{name}_12_20260101000000000_ascend_pt"
        rank.mkdir(parents=True)
        (rank / "profiler_metadata.json").write_text("{}")
        (tmp_path / name / "out" / "elsewhere_13_20260101000000000_ascend_pt").mkdir()
        (tmp_path / name / "out" / "elsewhere_13_20260101000000000_ascend_pt" / "x.json").write_text(name)

    hosts = [{"name": name, "path": str(tmp_path / name)} for name in "ab"]
    found = collected(capfd, hosts, tmp_path, "--source", "out/*")

    assert found["layout"] == "flat"
    assert sorted(content(tmp_path / "run")) == [
        "1/1_12_20260101000000000_ascend_pt/profiler_metadata.json",
        "1/elsewhere_13_20260101000000000_ascend_pt/x.json",
        "2/2_12_20260101000000000_ascend_pt/profiler_metadata.json",
        "2/elsewhere_13_20260101000000000_ascend_pt/x.json",
        "host_ips_mapping.txt",
    ]


def test_resuming_copies_what_is_new_and_keeps_what_differs(tmp_path: Path, capfd) -> None:
    origin = write_devices(tmp_path / "host", 2)
    hosts = [{"name": "a", "path": str(tmp_path / "host")}]
    first = collected(capfd, hosts, tmp_path, "--source", "device*")
    changed = origin / "device0/data/profiler/framework_raw_0.csv"
    changed.write_bytes(b"x" * changed.stat().st_size)
    (origin / "device1/data/profiler/flops_1.txt").write_text("new")

    second = collected(capfd, hosts, tmp_path, "--source", "device*", "--resume", code=3)

    assert (first["hosts"][0]["new_files"], second["hosts"][0]["new_files"]) == (4, 1)
    (kept,) = second["hosts"][0]["not_copied"]
    assert kept["reason"].startswith("differs from device0/")
    assert b"xxx" not in content(tmp_path / "run")["device0/data/profiler/framework_raw_0.csv"]


def test_a_command_copies_into_a_quarantine(tmp_path: Path, capfd) -> None:
    pod = write_devices(tmp_path / "pod", 1)
    (pod / "outside").symlink_to("/etc/passwd")
    command = [sys.executable, "-c", COPY, "{source}", "{target}"]

    found = collected(capfd, [{"name": "pod-0", "command": command, "source": str(pod)}], tmp_path)

    assert sorted(content(tmp_path / "run")) == [
        "host_ips_mapping.txt",
        "pod/device0/data/profiler/framework_raw_0.csv",
        "pod/device0/data/profiler/step_trace_raw_0_detail_time.csv",
    ]
    assert [Path(one["file"]).name for one in found["hosts"][0]["not_taken"]] == ["outside"]
    assert sorted(one.name for one in (tmp_path / "run/.stepscope-collect").glob("quarantine*")) == []


@pytest.mark.parametrize(
    ("code", "timeout_s", "reason"),
    [
        ("import sys; sys.exit('no such pod')", 60, "its command failed (exit status 1): no such pod"),
        ("import time; time.sleep(60)", 1, "its command took longer than 1 s (`timeout_s`)"),
        ("pass", 60, "its command copied nothing. Run it by hand to see why"),
        (
            "import os, sys; os.mkdir(sys.argv[1]); os.mkfifo(sys.argv[1] + '/f')",
            60,
            "its command copied nothing but links or devices (1), which are not taken. Run it by hand to see why",
        ),
        (
            "import sys; open(sys.argv[1], 'wb').write(bytes(1 << 21)); import time; time.sleep(60)",
            60,
            "its command was stopped: it has copied more than 1.00 MB (--max-gb)",
        ),
    ],
)
def test_a_command_that_fails_is_told(tmp_path: Path, capfd, code: str, timeout_s: int, reason: str) -> None:
    host = {"name": "pod", "command": [sys.executable, "-c", code, "{target}"], "timeout_s": timeout_s}

    found = collected(capfd, [{**host, "source": "/data"}], tmp_path, "--max-gb", 0.001, code=2)

    assert found["hosts"][0]["reason"] == reason


def test_words_of_a_command_are_never_a_shell_s(tmp_path: Path, capfd) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; open(sys.argv[2], 'w').write(sys.argv[1])",
        "{source} {host}",
        "{target}",
    ]

    collected(capfd, [{"name": "{target};id", "command": command, "source": "$(id) {host}"}], tmp_path)

    (text,) = (text for name, text in content(tmp_path / "run").items() if name != "host_ips_mapping.txt")
    assert text == b"$(id) {host} {target};id"


def test_a_share_that_is_not_mounted_is_named(tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host", 1)
    hosts = [{"path": str(tmp_path / "nowhere")}, {"path": "host"}]

    found = collected(capfd, hosts, tmp_path, "--source", "device*", code=3)

    assert [host["state"] for host in found["hosts"]] == ["failed", "complete"]
    assert "Check that the share is mounted" in found["hosts"][0]["reason"]


def test_a_full_disk_takes_what_fits(tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host", 1)
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": [{"path": "host", "source": "*"}]}))
    words = ["collect", "--hosts", tmp_path / "hosts.json", "-o", tmp_path / "run", "--keep-gb", 1e9, "--json"]

    assert main([*map(str, words)]) == 2

    (host,) = json.loads(capfd.readouterr().out)["hosts"]
    assert [one["reason"].partition(":")[0] for one in host["not_copied"]] == [
        "there is no room for it on the disk"
    ] * 2


def test_existing_directories_are_refused(tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host", 1)
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": [{"path": "host", "source": "*"}]}))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").touch()

    assert main(["collect", "--hosts", str(tmp_path / "hosts.json"), "-o", str(tmp_path / "run")]) == 2

    assert "is there already, and nothing is overwritten" in capfd.readouterr().err
    assert [one.name for one in (tmp_path / "run").iterdir()] == ["mine.txt"]


def test_a_command_that_does_not_exist_is_named_with_the_remedy(tmp_path: Path, capfd) -> None:
    host = {"name": "pod", "command": ["no-such-kubectl", "cp", "{target}"], "source": "/data"}

    found = collected(capfd, [host], tmp_path, code=2)

    assert found["hosts"][0]["reason"] == (
        "there is no command no-such-kubectl on this machine. Install it, or give its full path in `command`"
    )


def test_a_file_that_was_changed_after_it_arrived_is_named(tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host", 1)
    hosts = [{"name": "a", "path": str(tmp_path / "host")}]
    collected(capfd, hosts, tmp_path, "--source", "device*")
    place = tmp_path / "run/device0/data/profiler/framework_raw_0.csv"
    place.write_bytes(b"x" * place.stat().st_size)
    other = tmp_path / "run/device0/data/profiler/step_trace_raw_0_detail_time.csv"
    other.touch()

    found = collected(capfd, hosts, tmp_path, "--source", "device*", "--resume", code=3)

    assert (found["hosts"][0]["files"], found["hosts"][0]["new_files"]) == (1, 0)
    (changed,) = found["hosts"][0]["not_copied"]
    assert changed["reason"].startswith("device0/data/profiler/framework_raw_0.csv was changed after it arrived")
    assert place.read_bytes().startswith(b"xxx")


@pytest.mark.parametrize("words", [["--layout", "flat"], ["--summaries"]])
def test_files_numbered_by_device_without_their_table_warn_of_unknown_ranks(
    tmp_path: Path, capfd, words: list[str]
) -> None:
    for number in (1, 2):
        write_devices(tmp_path / f"host-{number}", 2, extra=number)
    hosts = [{"name": f"node-{number}", "path": str(tmp_path / f"host-{number}")} for number in (1, 2)]

    found = collected(capfd, hosts, tmp_path, "--source", "device*", *words)

    assert [one for one in found["warnings"] if "the ranks are unknown here" in one]


def test_what_is_missing_is_reported_once_and_hosts_have_their_names(tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host", 1)
    (tmp_path / "host" / "device0" / "a\nb.json").write_text("{}")
    hosts = [{"name": "node-a", "path": str(tmp_path / "host"), "source": "device*"}]
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": hosts}))

    words = ["collect", "--hosts", tmp_path / "hosts.json", "-o", tmp_path / "run", "--keep-gb", 0]
    assert main([*map(str, words)]) == 3

    out, err = capfd.readouterr()
    assert err.count("not copied") == 1
    assert [line.split()[:3] for line in out.splitlines() if "partial" in line] == [["1", "node-a", "partial"]]


def test_sigterm_ends_a_collection_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys, time; open(sys.argv[1], 'w'); time.sleep(60)", "{target}"]
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": [{"name": "a", "command": command, "source": "/x"}]}))
    words = [sys.executable, "-m", "stepscope", "collect", "--hosts", "hosts.json", "-o", "run"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE)
    for _ in range(600):
        if list((tmp_path / "run").rglob("quarantine-*/0/x")):
            break
        time.sleep(0.05)

    process.send_signal(signal.SIGTERM)

    assert process.communicate(timeout=20) == (None, b"")
    assert process.returncode == 143
    assert list((tmp_path / "run").rglob("quarantine-*")) == []


KUBECTL = """#!{python}
import os, subprocess, sys
source, target = sys.argv[2:4]
pod, _, path = source.partition(":")
print("tar: Removing leading `/' from member names", file=sys.stderr)
if not os.path.exists(path):
    sys.exit("tar: " + path + ": Cannot stat: No such file or directory\\ncommand terminated with exit code 2")
os.mkdir(target)
packed = subprocess.run(["tar", "cf", "-", "-C", path, "--exclude", "link", "."], stdout=subprocess.PIPE).stdout
subprocess.run(["tar", "xmf", "-", "-C", target], input=packed, check=True)
print('warning: skipping symlink: "link" -> "/etc"', file=sys.stderr)
"""


def test_a_command_like_kubectl_cp(tmp_path: Path, capfd) -> None:
    """It unpacks what `tar` packs in the pod, with new times of change, leaves out links and warns of them."""
    write_devices(tmp_path / "data" / "run1", 1)
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL.replace("{python}", sys.executable))
    kubectl.chmod(0o700)
    host = {"name": "worker-4", "command": [str(kubectl), "cp", "training/{host}:{source}", "{target}"]}

    found = collected(capfd, [{**host, "source": str(tmp_path / "data/run1")}], tmp_path)
    again = collected(capfd, [{**host, "source": str(tmp_path / "data/run1")}], tmp_path, "--resume")
    gone = collected(capfd, [{**host, "source": "/data/none"}], tmp_path, "--resume", code=2)
    wrong = {**host, "command": [str(kubectl), "cp", "{host}:{sorce}", "{target}"], "source": "/data/run1"}
    misspelt = collected(capfd, [wrong], tmp_path, "--resume", code=2)

    assert sorted(content(tmp_path / "run")) == [
        "host_ips_mapping.txt",
        "run1/device0/data/profiler/framework_raw_0.csv",
        "run1/device0/data/profiler/step_trace_raw_0_detail_time.csv",
    ]
    (warning,) = found["hosts"][0]["not_taken"]
    assert warning == {
        "file": 'warning: skipping symlink: "link" -> "/etc"',
        "reason": "a warning of its command",
    }
    assert (again["hosts"][0]["files"], again["hosts"][0]["new_files"]) == (2, 0)
    assert gone["hosts"][0]["reason"] == (
        "its command failed (exit status 1): tar: /data/none: Cannot stat: No such file or directory; "
        "command terminated with exit code 2"
    )
    assert "its command has {sorce}, which stands for nothing. Did you mean {source}?" in misspelt["hosts"][0]["reason"]


def test_addresses_in_names_of_directories_become_ids(tmp_path: Path, capfd) -> None:
    for name in ("10.0.0.7/profiler", "node-b/profiler", "run_10-0-0-7/x", "10.0.0.77/x"):
        (tmp_path / "share" / name).mkdir(parents=True)
        (tmp_path / "share" / name / "framework_raw_0.csv").write_text(name)
    hosts = [
        {"name": "node-b", "server_id": "10.0.0.8", "path": str(tmp_path / "share")},
        {"name": "10.0.0.7", "path": str(tmp_path / "none")},
    ]

    collected(capfd, hosts, tmp_path, "--source", "*", code=3)

    assert sorted(content(tmp_path / "run")) == [
        "1/1/profiler/framework_raw_0.csv",
        "1/2/profiler/framework_raw_0.csv",
        "10.0.0.77/x/framework_raw_0.csv",
        "host_ips_mapping.txt",
        "run_2/x/framework_raw_0.csv",
    ]
    own = [file for file in (tmp_path / "run/.stepscope-collect").rglob("*") if file.is_file()]
    assert own
    assert not [file for file in own if re.search(rb"10.0.0.7(?!7)|node-b", file.read_bytes())]
    assert (tmp_path / "run/host_ips_mapping.txt").read_text() == "10.0.0.8 1\n10.0.0.7 2\nnode-b 1\n"
