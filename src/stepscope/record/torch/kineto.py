"""One session of torch's profiler (Kineto), begun and ended, perhaps by different threads."""

from __future__ import annotations

import atexit
import json
import logging
import threading
from typing import Any

from stepscope.record.options import Options
from stepscope.record.torch.forked import guard_exits, mute, stop_recording
from stepscope.record.torch.identity import device_kind, distributed_info
from stepscope.record.torch.other_profilers import OURS

log = logging.getLogger("stepscope")

_kept = threading.local()
_inherited: list[KinetoSession] = []
"""Sessions that were active when this process was forked."""
_bound: list[KinetoSession] = []
"""Sessions that only their own threads can end."""


class KinetoSession:
    """Records operators from `start` to `end`.

    It records all threads, and any thread can end it. It is tied to the thread that starts it if memory is recorded, or
    before torch 2.6; then it ends with that thread at the latest. A session still active when the process exits would
    crash it, so it is ended before that.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._config, self.all_threads = _config(options)
        self._profile = _new_profile(options, self._config)
        setattr(self._profile, OURS, True)
        self._thread = threading.get_ident()
        self._results: Any = None
        self.over = False
        self.lost = False
        """It can no longer be ended, by any thread, and may still produce events."""

    def start(self) -> None:
        """Start recording."""
        guard_exits()
        self._profile._prepare_trace()
        self._profile._start_trace()
        _describe(self._options)
        atexit.register(self.end_if_left)
        if not self.all_threads:
            _kept.by_thread = _EndsWithThread(self)
            _bound.append(self)

    @property
    def can_end_here(self) -> bool:
        """Whether this thread can end it, or it has already ended."""
        return self.over or self.all_threads or self._thread == threading.get_ident()

    def end(self) -> Any:
        """Stop recording and return the results."""
        if not self.over:
            self.over = True
            atexit.unregister(self.end_if_left)
            self._profile.__exit__(None, None, None)  # waits for the device, as torch's own does
            self._results = self._profile.kineto_results
        return self._results

    def end_if_left(self) -> None:
        """The thread or the process ends: stop recording unless already stopped."""
        try:
            if self.can_end_here and self not in _inherited:
                self.end()
        except Exception as error:
            log.warning("Profiler: operator recording could not be stopped: %s", error)

    def abandon(self) -> None:
        """Another profiler begins in another thread; once it ends, this session can no longer be ended."""
        if not self.can_end_here:
            self.over = self.lost = True
            atexit.unregister(self.end_if_left)

    def mute(self) -> None:
        """Stop the events of a session that cannot be ended, if this is its thread."""
        if self.lost and self._thread == threading.get_ident():
            self.lost = False
            mute()

    def inherit(self) -> None:
        """In a forked child: stop events only, as ending the session takes time that most children can save."""
        if self.can_end_here:  # otherwise this thread does not record at all
            stop_recording(all_threads=self.all_threads)
        _inherited.append(self)


def make_room() -> None:
    """Before recording: end sessions that their threads left behind and, in a forked child, inherited sessions.

    Raises:
        RuntimeError: If that is not possible here.
    """
    import torch

    for session in _inherited:
        if not session.can_end_here or torch.cuda.is_initialized():
            raise RuntimeError(
                "this process was forked while operators were recorded, by another thread or on a GPU; "
                "start such processes with spawn"
            )
        torch.autograd._enable_record_function(True)
        session.end()
    _inherited.clear()
    for session in _bound:
        session.end_if_left()
        session.mute()
    _bound[:] = [session for session in _bound if not session.over or session.lost]
    if not all(session.over for session in _bound):
        raise RuntimeError(
            "with profile_memory, or before torch 2.6, only the thread that started recording operators can stop it; "
            "start and stop in the training thread"
        )


def give_up_bound() -> None:
    """Another profiler begins in this thread: sessions that only other threads can end are lost."""
    for session in _bound:
        session.abandon()


class _EndsWithThread:
    """Thread-local guard: ends a session that only its thread can end before the thread is torn down."""

    def __init__(self, session: KinetoSession) -> None:
        self._session = session

    def __del__(self) -> None:
        self._session.end_if_left()


def _new_profile(options: Options, config: Any) -> Any:
    """A torch profiler, not started."""
    from torch.autograd.profiler import profile

    chosen: dict[str, Any] = {
        "use_kineto": True,
        "record_shapes": options.record_shapes,
        "profile_memory": options.profile_memory,
        "with_stack": options.with_stack,
    }
    if device_kind() in ("cuda", "rocm"):
        chosen["use_device"] = "cuda"
    if config is not None:
        chosen["experimental_config"] = config
    try:
        return profile(**chosen)
    except TypeError:  # torch 1.13 has another argument for the device
        chosen["use_cuda"] = chosen.pop("use_device", None) is not None
        return profile(**chosen)


def _config(options: Options) -> tuple[Any, bool]:
    """Record without creating Python objects for events, and on all threads, if this torch supports it.

    Returns:
        The configuration (None: default) and whether all threads are recorded.
    """
    from torch._C._profiler import _ExperimentalConfig

    lean = {} if options.with_stack else {"trace_only": True}
    everywhere = {} if options.profile_memory else {"profile_all_threads": True}
    for chosen in ({**lean, **everywhere}, everywhere, lean):
        try:
            return _ExperimentalConfig(**chosen) if chosen else None, "profile_all_threads" in chosen
        except TypeError:
            continue
    return None, False


def _describe(options: Options) -> None:
    """Add the metadata to the trace that torch's own front end adds."""
    from torch.autograd import _add_metadata_json

    for name in ("record_shapes", "profile_memory", "with_stack"):
        if getattr(options, name):
            _add_metadata_json(name, "1")
    info = distributed_info()
    if info is not None:
        _add_metadata_json("distributedInfo", json.dumps(info))
