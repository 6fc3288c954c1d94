"""Copying captures to the manager's host."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.live.capture import room, transfer
from stepscope.live.capture.transfer import Arriving, NotSent, pieces_of


def capture(directory: Path, name: str = "c") -> Path:
    made = room.new_capture(directory, name)
    (made / "windows").mkdir()
    (made / "windows" / "trace.json.gz").write_bytes(bytes(range(256)) * 5000)
    (made / "empty.csv").write_bytes(b"")
    return made


def test_what_arrives_is_what_was_sent(tmp_path: Path) -> None:
    made = capture(tmp_path / "rank")
    (made / "link").symlink_to("/etc/passwd")
    arriving = Arriving(tmp_path / "copy")

    for name, piece in pieces_of(str(tmp_path / "rank"), "c"):
        assert len(piece) <= transfer.PIECE_BYTES
        arriving.take(name, piece)
    arriving.complete()

    copies = {path.relative_to(tmp_path / "copy") for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert {str(path) for path in copies} == {"windows/trace.json.gz", "empty.csv"}
    for path in copies:
        assert (tmp_path / "copy" / path).read_bytes() == (made / path).read_bytes()
        assert (tmp_path / "copy" / path).stat().st_mtime_ns == (made / path).stat().st_mtime_ns
        assert (tmp_path / "copy" / path).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "x" * 600])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotSent):
        Arriving(tmp_path / "copy").take(f"{name}\0005", b"")


def test_files_that_were_not_announced_and_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arriving = Arriving(tmp_path / "copy")
    with pytest.raises(NotSent):
        arriving.take("a", b"x")
    arriving.take("a\0005", b"")
    monkeypatch.setattr(transfer, "MOST_BYTES", 10)
    with pytest.raises(NotSent):
        arriving.take("a", bytes(11))


def test_only_captures_are_sent_and_no_large_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture(tmp_path / "rank")
    (tmp_path / "rank" / "captures" / "other").mkdir()
    (tmp_path / "rank" / "captures" / "other" / "secret").write_text("x")
    for directory, name in ((tmp_path / "rank", "other"), (tmp_path / "rank", "../.."), (tmp_path, "c")):
        with pytest.raises(NotSent, match="no capture"):
            list(pieces_of(str(directory), name))
    with pytest.raises(NotSent, match="no capture"):
        list(pieces_of("", "c"))
    monkeypatch.setattr(transfer, "MOST_BYTES", 10)
    with pytest.raises(NotSent, match="larger"):
        list(pieces_of(str(tmp_path / "rank"), "c"))


@pytest.mark.parametrize("time_ns", ["9" * 5000, "9" * 25, "-1", "x"])
def test_times_that_no_file_has_do_no_harm(tmp_path: Path, time_ns: str) -> None:
    arriving = Arriving(tmp_path / "copy")

    arriving.take(f"a\0{time_ns}", b"")
    arriving.take("a", b"x")
    arriving.complete()

    assert (tmp_path / "copy" / "a").read_bytes() == b"x"
