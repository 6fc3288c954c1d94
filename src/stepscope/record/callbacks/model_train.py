"""Callbacks for `Model.train` and `Model.fit` that record a range of steps or epochs.

    from stepscope.record.callbacks.model_train import ProfileSteps

    model.train(10, data, callbacks=[ProfileSteps(100, 110, output_path="./profile")])

`ProfileSteps(first, last, **options)` records steps `first` to `last`, counted from 1 like `cur_step_num`;
`ProfileEpochs(first, last, **options)` records epochs, which also works with data sinks, where steps are invisible. The
options are those of `stepscope.Profiler`. Both analyse when done, also if training ends or fails before `last`. Both
raise ValueError if first and last are not integers with 1 <= first <= last, and whatever `Profiler` raises.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

log = logging.getLogger("stepscope")

_UNITS = {"ProfileSteps": "step", "ProfileEpochs": "epoch"}


def __getattr__(name: str) -> Any:
    """Create the classes on first access, since their base class imports MindSpore."""
    if name not in _UNITS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _class(name)


class _Range:
    """Starts and stops a Profiler; the base of both callbacks."""

    unit: str
    counter: str

    def __init__(self, first: int, last: int, **options: Any) -> None:
        from stepscope.record.profiler import Profiler  # noqa: PLC0415 - not needed when this module is imported

        whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (first, last))
        if not whole or not 1 <= first <= last:
            raise ValueError(f"first and last must be integers with 1 <= first <= last, not {first!r}, {last!r}")
        self.first = first
        self.last = last
        self.profiler = Profiler(**{**options, "start_profile": False})
        self._records = False
        self._done = False
        self._last_ended: int | None = None  # None until training begins
        self._warned = False

    def _begin(self, run_context: Any) -> None:
        number = int(run_context.original_args()[self.counter])
        if self._last_ended is None:
            self._last_ended = number - 1
        if not self._records and not self._done and self.first <= number <= self.last:
            self._records = True
            self.profiler.start()

    def _end(self, run_context: Any) -> None:
        self._last_ended = int(run_context.original_args()[self.counter])
        if self._last_ended >= self.last:
            self._finish()

    def _finish(self) -> None:
        if self._records:
            self._records, self._done = False, True
            self.profiler.stop()
            self.profiler.analyse()

    def _training_over(self, *_: Any) -> None:
        """Finish; warn if the range was not reached. Training may report its end twice."""
        self._finish()
        if self._done or self._warned or self._last_ended is None:
            return
        self._warned = True
        text = f"{self.unit}s {self.first} to {self.last} were not reached; training ended with {self.unit}"
        sunk = self.unit == "step" and self._last_ended >= self.first
        hint = ". Steps are invisible with a data sink: use ProfileEpochs" if sunk else ""
        log.warning("Profiler: %s %d%s", text, self._last_ended, hint)


@cache
def _class(name: str) -> type:
    from mindspore.train import Callback

    unit = _UNITS[name]
    members = {
        "__doc__": f"Records {unit}s `first` to `last` of `Model.train`.",
        "__module__": __name__,
        "unit": unit,
        "counter": f"cur_{unit}_num",
        "__exit__": _Range._training_over,
        f"on_train_{unit}_begin": _Range._begin,
        f"on_train_{unit}_end": _Range._end,
        "on_train_end": _Range._training_over,
    }
    return type(name, (_Range, Callback), members)
