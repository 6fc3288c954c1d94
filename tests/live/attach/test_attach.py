"""`stepscope attach` on real training processes, through gdb."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from live.attach.attaching import Script, lasting, rows, script, stepscope, why_not_gdb

pytestmark = pytest.mark.skipif(bool(why_not_gdb()), reason=why_not_gdb() or "gdb works")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    pytest.importorskip("torch")
    room = str(tmp_path_factory.mktemp("live"))
    with script("training.py", STEPSCOPE_LIVE_DIR=room, STEPSCOPE_LIVE_SOCKET=f"{room}/none") as running:
        yield running


def recordings(output: Path) -> list[Path]:
    return sorted((output / "profiler" / "recording").iterdir())


def test_steps_of_a_running_process_are_recorded_and_can_be_analysed(training: Script, tmp_path: Path) -> None:
    code, printed = stepscope("attach", str(training.pid), "--steps", "8", "-o", str(tmp_path))

    assert code == 0, printed
    assert "recorded 8 steps" in printed and f"next: stepscope analyze {tmp_path}" in printed
    steps = [row for row in rows(recordings(tmp_path)[0] / "marks.csv") if row[0] == "step"]
    assert len(steps) == 8
    analysed = subprocess.run(
        [sys.executable, "-m", "stepscope", "analyze", str(tmp_path), "--json", "--no-store"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(analysed.stdout)
    after = training.look()
    assert not after["changed"] and not after["modules"]


def test_a_live_worker_stays_until_it_is_removed(
    training: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("msgspec")
    before = training.look()

    started, said = stepscope("attach", str(training.pid), "--live")
    again, refused = stepscope("attach", str(training.pid), "--live")
    during = training.look()
    removed, _ = stepscope("attach", str(training.pid), "--detach")
    missing, none = stepscope("attach", str(training.pid), "--detach")

    after = training.look()
    assert (started, removed) == (0, 0), said
    assert "started the live worker of rank 0" in said
    assert "no manager or proxy answers on this node yet" in said
    assert again and "runs in the process already" in refused
    assert missing and "no live worker runs in the process" in none
    assert during["modules"] and during["changed"]
    assert lasting(after) == lasting(before)


def test_a_live_worker_that_the_proxy_refuses_is_told(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("msgspec")
    from stepscope.live.messages import Refused, line_of

    place = tmp_path / "socket"
    proxy = socket.socket(socket.AF_UNIX)
    proxy.bind(str(place))
    proxy.listen(8)

    def refuse() -> None:
        with suppress(OSError):
            while True:
                link, _ = proxy.accept()
                link.settimeout(10)
                link.recv(4096)
                link.sendall(line_of(Refused("rank 0 belongs to another job")))
                link.shutdown(socket.SHUT_WR)
                while link.recv(4096):  # what is unread when a link is closed takes the answer with it
                    pass
                link.close()

    threading.Thread(target=refuse, daemon=True).start()
    with script("training.py", STEPSCOPE_LIVE_DIR=str(tmp_path), STEPSCOPE_LIVE_SOCKET=str(place)) as training:
        code, said = stepscope("attach", str(training.pid), "--live")
    proxy.close()

    assert code == 2
    assert "started the live worker of rank 0" in said
    assert "the proxy of this node refuses it. rank 0 belongs to another job. To remove it: " in said
    assert "next: stepscope live status" not in said


def test_ctrl_c_ends_the_recording_early_and_keeps_what_was_recorded(training: Script, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stepscope", "attach", str(training.pid), "--steps", "100000", "-o", str(tmp_path)]
    attached = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert attached.stderr is not None
    said = ""
    while "recording step" not in said:
        said = attached.stderr.readline()
        assert said, "it ended"
    time.sleep(0.3)

    attached.send_signal(signal.SIGINT)
    rest = attached.communicate(timeout=60)[1]

    assert attached.returncode == 0, rest
    assert "of 100000 steps" in rest
    after = training.look()
    assert not after["changed"] and not after["modules"]


def test_a_process_that_trains_in_another_thread_is_recorded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with script("training.py", "threaded") as running:
        code, printed = stepscope("attach", str(running.pid), "--steps", "4", "-o", str(tmp_path), "--no-operators")

    assert code == 0, printed
    assert len([row for row in rows(recordings(tmp_path)[0] / "marks.csv") if row[0] == "step"]) == 4
