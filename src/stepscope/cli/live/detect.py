"""`stepscope live detect`: the detector of slow ranks over stored light records."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.options import Debug, LanguageOption, argument
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.store.replay import Replay, Timed
    from stepscope.live.verdicts import Verdict
    from stepscope.present import Language

EXIT_SLOW = 1
"""Exit code if a verdict is open at the end, as of `stepscope live status`."""
LOOK_EVERY_NS = 1_000_000_000
"""The detector is asked once a second, of the time in the records."""
FOLLOW_EVERY_S = 1.0


def detect(
    directory: Annotated[Path, argument("DIR", "Records of a job, or of one of its ranks: ours or TaskD's.")],
    follow: Annotated[bool, typer.Option(help="Go on with what the job appends, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each verdict as a line of JSON.")] = False,
    language: LanguageOption = "en",
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> int:
    """Run the detector of slow ranks over the records that a job stores, without its manager.

    Verdicts are printed in the order in which they began, in their last state; with --follow, each when it opens and
    when it is over. The exit code is 1 if one lasts at the end. Records lack some of what workers send to a manager
    (backward passes, garbage collections), so a manager may find more. Hangs are found by a manager only.
    """
    from stepscope.live.store.replay import Replay

    if not directory.is_dir():
        raise StepscopeError(f"{directory}: is not a directory. Give the directory of a job's records")
    replay = Replay(directory)
    watching = _Watching()
    told = watching.take(replay.stored())
    if not follow:
        told += watching.take(replay.finish(), last=True)
        if not replay.ranks:
            raise StepscopeError(f"{directory}: no records below it. Give the directory of a job or of a rank")
        _show(_last_states(told), as_json, language)
        _warn_of_rivals(replay.rivals)
        _explain(replay, watching, told, as_json)
        return EXIT_SLOW if watching.detector.open else 0
    with suppress(KeyboardInterrupt):
        _show(_last_states(told), as_json, language)
        warned = replay.rivals
        _warn_of_rivals(warned)
        while True:
            time.sleep(FOLLOW_EVERY_S)
            news = [one for one in watching.take(replay.appended()) if watching.is_news(one)]
            _show(news, as_json, language)
            _warn_of_rivals({rank: pids for rank, pids in replay.rivals.items() if rank not in warned})
            warned |= replay.rivals
    return EXIT_SLOW if watching.detector.open else 0


class _Watching:
    """Feeds a detector, which knows the time from the records."""

    def __init__(self) -> None:
        from stepscope.live.detect import Detector

        self.detector = Detector()
        self.steps: tuple[int, int] | None = None
        """First and last step."""
        self._told: dict[str, tuple[int, bool]] = {}
        self._now_ns = 0
        self._looked_ns = 0

    def take(self, messages: Iterable[Timed], *, last: bool = False) -> list[Verdict]:
        """The verdicts to which messages lead, in order; of one that changes, each state."""
        return list(self._verdicts(messages, last))

    def is_news(self, verdict: Verdict) -> bool:
        """Whether a verdict has opened or is over, and has not only changed."""
        state = verdict.since_step, verdict.is_over
        known, self._told[verdict.key] = self._told.get(verdict.key), state
        return known is None or known[1] != state[1]

    def _verdicts(self, messages: Iterable[Timed], last: bool) -> Iterator[Verdict]:
        from stepscope.live.messages import Digest

        for timed in messages:
            self._now_ns = max(self._now_ns, timed.at_ns)
            if isinstance(timed.message, Digest):
                step = timed.message.step
                first, latest = self.steps or (step, step)
                self.steps = min(first, step), max(latest, step)
                self.detector.digest(timed.message)
            else:
                self.detector.hello(timed.message)
            if self._now_ns - self._looked_ns >= LOOK_EVERY_NS:
                self._looked_ns = self._now_ns
                yield from self.detector.look(self._now_ns)
        if last:
            self._now_ns += 60 * LOOK_EVERY_NS  # nothing more will come: do not wait for missing digests
        yield from self.detector.look(self._now_ns)


def _last_states(verdicts: list[Verdict]) -> list[Verdict]:
    """Each verdict in its last state, in the order in which they began. One that was over and began again is two."""
    found: dict[tuple[str, int], Verdict] = {}
    times: dict[str, int] = {}
    over: set[str] = set()
    for one in verdicts:
        if one.key in over:
            times[one.key] = times.get(one.key, 0) + 1
            over.discard(one.key)
        found[one.key, times.get(one.key, 0)] = one
        if one.is_over:
            over.add(one.key)
    return sorted(found.values(), key=lambda one: (one.since_at_ns, one.key))


def _show(verdicts: list[Verdict], as_json: bool, language: Language) -> None:
    import msgspec

    from stepscope.cli.output import Output
    from stepscope.live.show.sentences import circumstances, headline

    out = Output()
    for one in verdicts:
        if as_json:
            print(msgspec.json.encode(one).decode())
        else:
            out.say(f"{headline(one, language)} ({circumstances(one, language)})")
    sys.stdout.flush()


def _warn_of_rivals(rivals: Mapping[int, tuple[int, int]]) -> None:
    """Say of which ranks the steps of two processes are mixed."""
    from stepscope.cli.notes import note
    from stepscope.selection import named_numbers

    if not rivals:
        return
    one, other = next(iter(rivals.values()))
    note(
        f"warning: two processes ({one} and {other}) have written the records of {named_numbers('rank', [*rivals])} "
        "at the same time, so verdicts may be wrong. If they are of two jobs, give one of these another MINDX_TASK_ID "
        "or STEPSCOPE_LIVE_DIR"
    )


def _explain(replay: Replay, watching: _Watching, told: list[Verdict], as_json: bool) -> None:
    """What was looked at, and what could not be read."""
    from stepscope.cli.notes import note
    from stepscope.present import plural
    from stepscope.selection import named_numbers

    if replay.unread:
        note(f"warning: records of {named_numbers('rank', replay.unread)} could not be read. Check permissions")
    problems = replay.problems
    for count, what in (
        (problems.bad_lines, "damaged lines were left out"),
        (problems.unended, "ranges have no recorded end and were left out"),
    ):
        if count:
            note(f"warning: {count:,} {what}")
    if watching.steps is None:
        note("no step was recorded, so nothing can be judged. Switch steps on: stepscope live switch step=on")
    elif not told and not as_json:
        first, last = watching.steps
        print(f"Nobody is slow: {plural(len(replay.ranks), 'rank')}, steps {first:,} to {last:,}.")
