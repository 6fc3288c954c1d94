"""One recording in progress: its directory, its files and the thread that writes them."""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from stepscope.record import signs
from stepscope.record.backend import Backend
from stepscope.record.device_sampler import DeviceSampler
from stepscope.record.files import append_text, make_private, replace_json
from stepscope.record.host_sampler import HostSampler
from stepscope.record.marks import MarkBuffer, epoch_shift_ns
from stepscope.record.options import Options
from stepscope.record.process_facts import ProcessFacts, own_thread
from stepscope.record.windows import Windows
from stepscope.recording_format.about import FAILED, RECORDING, STOPPED, About, Span
from stepscope.recording_format.layout import ABOUT, RECORDER_LOG, RECORDINGS, recording_name

log = logging.getLogger("stepscope")

FLUSH_SECONDS = 0.5
"""Marks are on disk after this time, at the latest after 1.5 times this; the documented limit is one second."""
_PASSING = {errno.EMFILE, errno.ENFILE, errno.EINTR, errno.EAGAIN, errno.ENOMEM}
"""Errors that may be temporary; nothing is lost meanwhile."""
_PATIENCE = 40
"""Number of retries, about 20 seconds."""


class Session:
    """Raw data of one rank on its way to disk. Nothing is written before `open`.

    Args:
        root: The `profiler` directory.
        marks: Where the hooks report to.
        failed: Called once, from any thread, if the recording cannot continue.
        counted: See `Windows`.
    """

    def __init__(
        self,
        root: Path,
        backend: Backend,
        options: Options,
        marks: MarkBuffer,
        failed: Callable[[], None],
        counted: Callable[[int, int], None],
    ) -> None:
        self.root = root
        self._on_failure = failed
        self._counted = counted
        self._backend = backend
        self._options = options
        self._marks = marks
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.directory: Path | None = None
        self.windows = Windows(self._backend, self.problem, self._counted)
        self.failed = False
        self._facts = ProcessFacts(self._backend)
        self._spans: list[Span] = []
        self._problems: list[str] = []
        self._state = RECORDING
        self._started_ns = 0
        self._samplers: list[HostSampler | DeviceSampler] = []
        self._wants_device = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._dirty = False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the recorder's thread runs."""
        return self._thread is not None

    def open(self) -> None:
        """Create the directory if missing, and start writing.

        Raises:
            OSError: If the directory is not writable.
        """
        self._facts.look()
        if self.directory is None:
            self._started_ns = time.time_ns()
            name = recording_name(self._facts.rank, socket.gethostname(), os.getpid(), self._started_ns)
            directory = self.root / RECORDINGS / name
            make_private(directory)
            signs.give(signs.RECORDING, str(directory))
            self.directory = self.windows.directory = directory
        self._state = RECORDING
        self._backend.started(self.directory)
        self._describe(self.directory)
        self._wake.clear()
        self._thread = own_thread(self._run, "stepscope-recorder", self.directory)
        self._thread.start()

    def close(self) -> None:
        """Write everything to disk and end the thread."""
        assert self.directory is not None
        self._facts.look()
        self._backend.stopped(self.directory)
        self.windows.wait()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._state = FAILED if self.failed else STOPPED
        try:
            self._marks.flush(self.directory)
            self._sample(self.directory)
            self._describe(self.directory)
        except OSError as error:
            self.fail(f"the last rows could not be written to {self.directory} ({error.strerror or error})")

    def flush(self) -> None:
        """Write all marks now."""
        assert self.directory is not None
        self._marks.flush(self.directory)

    def span_began(self) -> None:
        """A recorded span begins."""
        self._spans.append((time.time_ns(), None))
        self._dirty = True

    def span_ended(self) -> None:
        """A recorded span ends."""
        self._spans[-1] = (self._spans[-1][0], time.time_ns())
        self._dirty = True

    @property
    def has_spans(self) -> bool:
        """Whether anything was recorded so far."""
        return bool(self._spans)

    @property
    def recorded_ns(self) -> int:
        """Total length of all finished spans."""
        return sum(end - start for start, end in self._spans if end is not None)

    def forget(self) -> None:
        """In a forked child: the recording belongs to the parent, and copies of its locks may never be released."""
        self._marks.forget()
        self._begin_anew()

    def _describe(self, directory: Path) -> None:
        """Write `recording.json` with the current state."""
        with self._lock:
            about = About(
                directory,
                self._state,
                **self._facts.known(),
                epoch_shift_ns=epoch_shift_ns(),
                options=self._options.as_json(),
                spans=list(self._spans),
                started_ns=self._started_ns,
                updated_ns=time.time_ns(),
                problems=self._problems,
            )
            replace_json(directory / ABOUT, about.as_json())
        self._dirty = False

    def look_again(self) -> None:
        """The process group was created or is about to be destroyed: update the facts and write them soon."""
        self._facts.look()
        self._dirty = True

    @property
    def problems(self) -> list[str]:
        """What the recorder could not do so far."""
        return list(self._problems)

    def problem(self, text: str) -> None:
        """Log and store what the recorder could not do. Training continues."""
        if text in self._problems:
            return
        log.warning("Profiler: %s", text)
        self._keep(text)

    def _keep(self, text: str) -> None:
        """Store a logged problem in the recording."""
        self._problems.append(text)
        self._dirty = True
        if self.directory is not None:
            try:
                stamp = datetime.now(timezone.utc).isoformat(timespec="seconds")
                append_text(self.directory / RECORDER_LOG, "# what the recorder could not do", f"{stamp} {text}\n")
            except OSError as error:
                log.warning("Profiler: %s cannot be written: %s", self.directory / RECORDER_LOG, error)

    def fail(self, text: str) -> None:
        """The recording cannot continue; logged once."""
        if not self.failed:
            self.failed = True
            self._state = FAILED
            self._on_failure()
            log.error("Profiler: %s. Nothing more is recorded; training continues", text)
            self._keep(text)

    def _run(self, directory: Path) -> None:
        """The recorder's thread: flush, sample, and update `recording.json`."""
        self._make_samplers()
        interval = self._options.sampling_interval / 1000
        next_sample = time.monotonic()
        trouble = 0
        while not self._wake.is_set() and not self.failed:
            try:
                self._marks.flush(directory)
                if time.monotonic() >= next_sample:
                    next_sample = max(next_sample + interval, time.monotonic())
                    self._sample(directory)
                if self._dirty:
                    self._describe(directory)
                trouble = 0
            except OSError as error:
                trouble += 1
                if error.errno not in _PASSING or trouble > _PATIENCE:
                    self.fail(f"{error.strerror or error} in {directory}")
            except Exception as error:
                self.fail(f"the recorder's thread failed ({type(error).__name__}: {error})")
            self._wake.wait(min(FLUSH_SECONDS, max(next_sample - time.monotonic(), 0.001)))
        if self.failed:
            try:
                self._describe(directory)
            except OSError as error:
                log.debug("Profiler: %s could not be written: %s", ABOUT, error)

    def _make_samplers(self) -> None:
        if self._samplers:
            return
        try:
            self._samplers.append(HostSampler(self._backend.worker_pids))
        except ImportError:
            self.problem("host samples require psutil; install it with: pip install psutil")
        self._wants_device = self._backend.target == "gpu"

    def _make_device_sampler(self) -> None:
        """Wait until training uses a device: before that, all ranks would sample the first one."""
        device = self._backend.identity().device_id
        if device is None:
            return
        self._wants_device = False
        try:
            self._samplers.append(DeviceSampler(device, pcie=self._options.pcie))
        except ImportError:
            self.problem("GPU counters require NVML; install it with: pip install nvidia-ml-py")
        except RuntimeError as error:
            self.problem(f"GPU counters are not recorded: {error}")

    def _sample(self, directory: Path) -> None:
        if self._wants_device:
            self._make_device_sampler()
        now = time.perf_counter_ns() + epoch_shift_ns()
        for sampler in list(self._samplers):
            try:
                text = sampler.read(now)
            except Exception as error:
                self._samplers.remove(sampler)
                self.problem(f"sampling for {sampler.file.name} stopped ({type(error).__name__}: {error})")
                continue
            if text:
                append_text(directory / sampler.file.name, sampler.file.header, text)
