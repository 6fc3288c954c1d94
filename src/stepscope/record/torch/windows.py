"""Windows of operators, recorded by torch's profiler (Kineto).

What a window costs was measured with torch 2.13 on a CPU. Recording an event costs about 0.5 us. Stopping costs 5.5 us
an event with input shapes and 1.6 us without, on the training thread: Kineto makes the texts of its trace there and
then, and no option avoids it (leaving out concrete inputs, external correlation, or the links from forward to backward
saves under 5 %). `trace_only` avoids the Python objects that torch would make beside these, another 0.5 to 5 us. What
is left, writing, is done elsewhere: see `export.py`.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.record.options import Options
from stepscope.record.torch.export import export
from stepscope.record.torch.identity import device_kind, distributed_info
from stepscope.record.torch.patches import Patches
from stepscope.record.torch.rivals import Rivals
from stepscope.record.torch.scopes import Scopes

log = logging.getLogger("stepscope")


class KinetoWindows:
    """Records operators with torch's own profiler.

    Args:
        options: What to record of them.
        patches: Puts in place what watches for other profilers.
    """

    kind = "kineto"

    def __init__(self, options: Options, patches: Patches) -> None:
        self._options = options
        self._rivals = Rivals(patches, self._give_way)
        self._patches = patches
        self._scopes = Scopes()
        self._profile: Any = None
        self._thread = 0
        self._cut: Any = None

    def attach(self) -> None:
        """Begin to watch for other profilers, and for what is open where a window ends."""
        self._rivals.attach()
        self._scopes.attach(self._patches)

    def begin(self, directory: Path) -> None:  # noqa: ARG002 - the Ascend kind needs it
        """Begin to record.

        Raises:
            RuntimeError: If another profiler is active.
        """
        if self._rivals.active:
            raise RuntimeError("another torch.profiler is active in this process, and there can be one at a time")
        self._cut = None
        with self._rivals:
            profile = _new_profile(self._options)
            profile._prepare_trace()
            profile._start_trace()
            _describe(self._options)
        self._profile, self._thread = profile, threading.get_ident()
        self._scopes.watch()

    def end(self, directory: Path) -> Callable[[], list[str]] | None:
        """Stop recording. What the window recorded before it had to give way counts."""
        results, self._cut = self._stop() or self._cut, None
        return None if results is None else functools.partial(export, results, directory)

    def in_child(self) -> None:
        """In a forked child the profiler would go on recording, into memory that nobody reads: no more events."""
        from torch.autograd import _enable_record_function

        profile, self._profile = self._profile, None
        if profile is not None and self._thread == threading.get_ident():  # else this thread does not record at all
            _enable_record_function(False)

    def _stop(self) -> Any:
        """Stop, and what was recorded."""
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        if self._thread != threading.get_ident():
            raise RuntimeError("operators are recorded by the thread that began to; only that one can end it")
        self._scopes.end()
        with self._rivals:
            profile.__exit__(None, None, None)  # waits for the device, as torch's own does
        return profile.kineto_results

    def _give_way(self) -> None:
        """Somebody else's profiler begins: end what is recorded here, and keep it for `end`."""
        if self._profile is None:
            return
        if self._thread == threading.get_ident():
            self._cut = self._stop()
            log.info("Profiler: another torch.profiler begins; operators are not recorded from here on")


def _new_profile(options: Options) -> Any:
    """A profiler of torch's, not begun."""
    from torch.autograd.profiler import profile

    chosen: dict[str, Any] = {
        "use_kineto": True,
        "record_shapes": options.record_shapes,
        "profile_memory": options.profile_memory,
        "with_stack": options.with_stack,
    }
    if device_kind() in ("cuda", "rocm"):
        chosen["use_device"] = "cuda"
    lean = None if options.with_stack else _trace_only()
    if lean is not None:
        chosen["experimental_config"] = lean
    try:
        return profile(**chosen)
    except TypeError:  # torch 1.13 has another word for the device
        chosen["use_cuda"] = chosen.pop("use_device", None) is not None
        return profile(**chosen)


def _trace_only() -> Any:
    """Have no Python object made of each event; None where torch cannot be told so."""
    from torch._C._profiler import _ExperimentalConfig

    try:
        return _ExperimentalConfig(trace_only=True)
    except TypeError:
        return None


def _describe(options: Options) -> None:
    """Put into the trace what torch's own front end puts there."""
    from torch.autograd import _add_metadata_json

    for name in ("record_shapes", "profile_memory", "with_stack"):
        if getattr(options, name):
            _add_metadata_json(name, "1")
    info = distributed_info()
    if info is not None:
        _add_metadata_json("distributedInfo", json.dumps(info))
