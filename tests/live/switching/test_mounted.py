"""The mounted file with the switches: what changes it acts on, and what it reports."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, MOST_BYTES, NONE
from stepscope.live.switching.mounted import MOST_PROBLEMS, QUIET_S, MountedSwitches

GUIDE = '{"CommunicationOperator":"off","Step":"on","SaveCheckpoint":"on","FP":"on","DataLoader":"on"}'
FIVE = {
    Kind.COMMUNICATION: False,
    Kind.STEP: True,
    Kind.CHECKPOINT: True,
    Kind.FORWARD: True,
    Kind.DATA: True,
}


class Clock:
    """A clock that tests set."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profilingSwitch"


@pytest.fixture
def switches(file: Path, clock: Clock) -> MountedSwitches:
    return MountedSwitches(file, now_s=clock)


def looks(switches: MountedSwitches, clock: Clock, times: int = 2) -> list[dict[Kind, bool] | None]:
    """What looks half a second apart return."""
    found = []
    for _ in range(times):
        clock.now_s += 0.5
        found.append(switches.look())
    return found


def volume_with(directory: Path, content: str, name: str) -> None:
    """Put a content into a ConfigMap volume as Kubernetes does: a new directory, then a link exchanged by rename."""
    (directory / name).mkdir()
    (directory / name / "profilingSwitch").write_text(content)
    (directory / "..data_tmp").symlink_to(name)
    (directory / "..data_tmp").rename(directory / "..data")
    if not (directory / "profilingSwitch").is_symlink():
        (directory / "profilingSwitch").symlink_to("..data/profilingSwitch")


def test_the_first_look_returns_the_content_of_the_guide_and_the_next_one_nothing(
    file: Path, switches: MountedSwitches
) -> None:
    file.write_text(GUIDE)

    assert switches.look() == FIVE
    assert switches.look() is None


def test_an_edit_of_the_same_size_within_one_tick_of_the_clock_is_seen(file: Path, switches: MountedSwitches) -> None:
    file.write_text('{"Step":"on","FP":"off"}')
    before = file.stat()
    assert switches.look() == {Kind.STEP: True, Kind.FORWARD: False}

    with file.open("r+") as opened:
        opened.write('{"FP":"on","Step":"off"}')
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert (file.stat().st_mtime_ns, file.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert switches.look() == {Kind.FORWARD: True, Kind.STEP: False}


def test_other_spaces_and_another_order_of_keys_are_no_change(file: Path, switches: MountedSwitches) -> None:
    file.write_text(GUIDE)
    switches.look()

    file.write_text(json.dumps(dict(reversed(json.loads(GUIDE).items())), indent=2))

    assert switches.look() is None


def test_keys_that_are_missing_are_not_in_the_changes(file: Path, switches: MountedSwitches) -> None:
    file.write_text('{"Step":"off"}')

    assert switches.look() == {Kind.STEP: False}


def test_exchanged_links_of_a_config_map_volume_are_followed(tmp_path: Path, clock: Clock) -> None:
    volume_with(tmp_path, GUIDE, "..2026_01")
    by_file = MountedSwitches(tmp_path / "profilingSwitch", now_s=clock)
    by_directory = MountedSwitches(tmp_path, now_s=clock)
    assert by_file.look() == by_directory.look() == FIVE

    volume_with(tmp_path, GUIDE.replace('"off"', '"on"'), "..2026_02")

    assert by_file.look() == by_directory.look() == dict.fromkeys(Kind, True)


def test_a_look_amid_many_exchanges_never_sees_a_mixture_or_a_problem(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    on, off = (json.dumps(state.as_guide()) for state in (ALL, NONE))
    volume_with(tmp_path, off, "..0")
    switches = MountedSwitches(tmp_path, now_s=clock)

    def exchange() -> None:
        for number in range(1, 300):
            volume_with(tmp_path, on if number % 2 else off, f"..{number}")

    writer = threading.Thread(target=exchange)
    writer.start()
    seen = []
    while writer.is_alive():
        seen.append(switches.look())
    writer.join()
    seen.append(switches.look())

    states = [state for state in seen if state is not None]
    assert all(set(state.values()) in ({True}, {False}) for state in states)
    assert states[-1] == dict.fromkeys(Kind, True)
    assert not caplog.records


def test_a_half_written_file_is_read_again_before_it_is_reported(
    file: Path, switches: MountedSwitches, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(GUIDE)
    switches.look()

    new = GUIDE.replace('"off"', '"on"')
    for length in (0, 1, 20, len(new) - 1):
        file.write_text(new[:length])
        clock.now_s += 0.09
        assert switches.look() is None
    file.write_text(new)

    assert switches.look() == {**FIVE, Kind.COMMUNICATION: True}
    assert not caplog.records
    assert not switches.problem


def test_each_writer_gets_time_to_finish(
    file: Path, switches: MountedSwitches, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(GUIDE[:-1])
    switches.look()
    file.write_text(GUIDE)
    assert looks(switches, clock) == [FIVE, None]

    file.write_text(GUIDE[:-1])
    looks(switches, clock, times=1)
    assert not caplog.records
    looks(switches, clock, times=1)
    assert len(caplog.records) == 1

    caplog.clear()
    caplog.set_level(logging.INFO)
    file.write_text(GUIDE)
    looks(switches, clock)
    assert [record.getMessage() for record in caplog.records] == [f"{file}: the switches can be read again"]


def test_a_file_may_be_as_long_as_what_is_read_at_most(file: Path, switches: MountedSwitches) -> None:
    file.write_text(GUIDE.ljust(MOST_BYTES))

    assert switches.look() == FIVE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"Step":"On"}', "'Step' is 'On'; it must be on or off"),
        ('{"Step":"1"}', "'Step' is '1'; it must be on or off"),
        ('{"FP":""}', "'FP' is ''; it must be on or off"),
        ('{"Step":true}', "'Step' is True; it must be on or off"),
        ('{"Step":1}', "'Step' is 1; it must be on or off"),
        ('{"Step":null}', "'Step' is None; it must be on or off"),
        ('{"Step":["on"]}', "'Step' is ['on']; it must be on or off"),
        ('{"Step":"on","Kernel":"on"}', "'Kernel' is not a switch"),
        ('{"Step":"on","Step":"off"}', "step is given both on and off"),
        ('{"Step":"on"', "not valid JSON"),
        ("Step=on", "not valid JSON"),
        ("", "not valid JSON"),
        ('["Step"]', "not a JSON object"),
        ('"on"', "not a JSON object"),
        ('{"Step":"' + "x" * 1_000_000 + '"}', "has 1,000,011 bytes; at most 65,536 are read"),
        ('{"Step":"' + "x" * 60_000 + '"}', "'Step' is 'xxx"),
        ("[" * 60_000, "not valid JSON"),
    ],
)
def test_bad_content_changes_nothing_and_is_reported_once_by_file_key_and_value(
    content: str,
    words: str,
    file: Path,
    switches: MountedSwitches,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file.write_text(GUIDE)
    switches.look()

    file.write_text(content)
    found = looks(switches, clock, times=200)

    assert found == [None] * 200
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(file) in record.getMessage()
    assert words in record.getMessage()
    assert len(record.getMessage()) < 400 + len(str(file))
    assert words in switches.problem


def test_a_mended_file_that_says_the_same_as_before_is_no_change(
    file: Path, switches: MountedSwitches, clock: Clock
) -> None:
    file.write_text(GUIDE)
    switches.look()
    file.write_text("{")
    looks(switches, clock)
    assert switches.problem

    file.write_text(GUIDE)

    assert switches.look() is None
    assert not switches.problem


def test_a_file_that_was_never_there_is_no_fault(
    file: Path, switches: MountedSwitches, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    assert looks(switches, clock, times=5) == [None] * 5

    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert switches.problem == "there is no such file"
    file.write_text(GUIDE)
    assert switches.look() == FIVE


@pytest.mark.parametrize("again", [GUIDE, GUIDE.replace("off", "on")])
def test_the_state_stays_while_the_file_is_away(
    again: str, file: Path, switches: MountedSwitches, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(GUIDE)
    switches.look()

    file.unlink()

    assert looks(switches, clock, times=5) == [None] * 5
    assert [record.getMessage() for record in caplog.records] == [
        f"{file}: there is no such file. The switches stay as they are"
    ]
    file.write_text(again)
    assert switches.look() == (None if again == GUIDE else {**FIVE, Kind.COMMUNICATION: True})


def test_each_problem_is_reported_and_the_same_one_after_half_a_minute_at_the_earliest(
    file: Path, switches: MountedSwitches, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def messages() -> int:
        for content in ('{"Step":"On"}', '{"FP":"On"}'):
            file.write_text(content)
            looks(switches, clock)
        return len(caplog.records)

    assert [messages() for _ in range(5)] == [2] * 5
    clock.now_s += QUIET_S
    assert messages() == 4


def test_a_file_that_is_rewritten_with_ever_other_nonsense_takes_no_more_memory(
    file: Path, switches: MountedSwitches, clock: Clock
) -> None:
    for number in range(100):
        file.write_text(f'{{"Step":"{number}"}}')
        looks(switches, clock, times=1)

    assert len(switches._reported_s) == MOST_PROBLEMS


def test_what_is_no_file_is_a_problem_and_blocks_nobody(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder" / "profilingSwitch").mkdir(parents=True)
    (tmp_path / "loop").symlink_to("loop")

    for name in ("pipe", "folder", "loop", "pipe/below"):
        assert looks(MountedSwitches(tmp_path / name, now_s=clock), clock) == [None, None]

    assert [record.getMessage().partition(": ")[2].partition(". ")[0] for record in caplog.records] == [
        "is not a file",
        "is not a file",
        "Too many levels of symbolic links",
        "Not a directory",
    ]


def test_a_byte_order_mark_is_accepted(file: Path, switches: MountedSwitches) -> None:
    file.write_text(GUIDE, encoding="utf-8-sig")

    assert switches.look() == FIVE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["on", "off", "On"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["Step", "FP", "all"]), inner),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(content=st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_the_file_holds_a_look_returns_switches_or_nothing(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    switches = MountedSwitches(file)

    found = switches.look()

    assert found is None or all(isinstance(kind, Kind) and isinstance(state, bool) for kind, state in found.items())
