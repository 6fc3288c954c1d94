"""Reading records as they grow."""

from __future__ import annotations

from pathlib import Path

from stepscope.live.store import RecordStore, tail
from stepscope.live.store.lines import host_range
from stepscope.live.store.tail import Tail


def line(number: int) -> str:
    """Two lines of a range."""
    return host_range(number, f"step {number}", "default", number, number + 1, 3, 4)


def taken(reader: Tail) -> dict[int, str]:
    """What a look takes, by rank."""
    found: dict[int, str] = {}
    for appended in reader.look():
        found[appended.rank] = found.get(appended.rank, "") + appended.lines.decode()
    return found


def test_each_look_takes_what_was_appended_since_the_last_one(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, "job", 5, limit_mb=10)
    reader = Tail(tmp_path)

    assert taken(reader) == {}
    store.write(line(1))
    assert taken(reader) == {5: line(1)}
    assert taken(reader) == {}
    store.write(line(2) + line(3))
    assert taken(reader) == {5: line(2) + line(3)}


def test_half_lines_wait_for_their_end(tmp_path: Path) -> None:
    file = tmp_path / "job/0/7"
    file.parent.mkdir(parents=True)
    whole = line(1)
    file.write_text(whole[:100])
    reader = Tail(tmp_path)

    assert taken(reader) == {}
    file.write_text(whole)
    assert taken(reader) == {0: whole}


def test_new_files_and_new_ranks_are_found_and_vanished_ones_forgotten(tmp_path: Path) -> None:
    reader = Tail(tmp_path / "job")
    for rank, name, number in ((0, "1", 1), (0, "2", 2), (11, "1", 3)):
        file = tmp_path / "job" / str(rank) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(line(number))

    assert taken(reader) == {0: line(1) + line(2), 11: line(3)}
    (tmp_path / "job/0/1").unlink()
    (tmp_path / "job/0/10").write_text(line(4))
    assert taken(reader) == {0: line(4)}


def test_a_file_that_was_cut_or_replaced_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "0/1"
    file.parent.mkdir(parents=True)
    file.write_text(line(1) + line(2))
    reader = Tail(tmp_path / "0")
    taken(reader)

    file.write_text(line(3))
    assert taken(reader) == {0: line(3)}
    file.unlink()
    file.write_text(line(4) * 9)
    assert taken(reader) == {0: line(4) * 9}


def test_foreign_files_and_links_are_passed_over(tmp_path: Path) -> None:
    directory = tmp_path / "job/0"
    directory.mkdir(parents=True)
    (directory / "1").write_text("not a record\n")
    (directory / "2x").write_text(line(1))
    outside = tmp_path / "outside"
    outside.write_text(line(2))
    (directory / "3").symlink_to(outside)

    assert taken(Tail(tmp_path)) == {}


def test_a_line_that_is_too_long_costs_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "job/0/1"
    file.parent.mkdir(parents=True)
    file.write_text(line(1) + "x" * (3 << 20) + "\n" + line(2))
    reader = Tail(tmp_path)

    assert taken(reader) == {0: line(1) + line(2)}
    assert reader.too_long == 1


def test_a_look_is_bounded_and_ranks_take_turns(tmp_path: Path) -> None:
    for rank in range(4):
        store = RecordStore(tmp_path, "job", rank, limit_mb=100)
        store.write(line(1) * 10_000)
    reader = Tail(tmp_path, most_bytes=1 << 20)

    looks = 0
    size = dict.fromkeys(range(4), 0)
    while looks == 0 or reader.is_behind:
        looks += 1
        found = taken(reader)
        assert sum(map(len, found.values())) <= reader.most_bytes + tail._BLOCK
        for rank, text in found.items():
            size[rank] += len(text)

    assert set(size.values()) == {10_000 * len(line(1))} and looks > 4


def test_from_the_end_on(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, "job", 0, limit_mb=10)
    store.write(line(1))
    reader = Tail(tmp_path, from_end=True)

    assert taken(reader) == {}
    store.write(line(2))
    assert taken(reader) == {0: line(2)}
