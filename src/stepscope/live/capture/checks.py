"""Active checks: small measurements between two steps of a running job, off unless somebody asks for them.

`gemm` times a matrix product on the rank's device, so a slow device shows without the model's work. `link` times
transfers between pairs of ranks (`links.py`). The training thread stands still for them, at most `MOST_NS` a step.
"""

from __future__ import annotations

import logging
import threading
from statistics import median
from time import perf_counter_ns
from typing import Any

from stepscope.live.capture.links import CannotMeasure, Links
from stepscope.live.capture.window_backend import is_torch
from stepscope.live.messages import Check, Checked
from stepscope.record.backend import Backend
from stepscope.record.steps import StepTracker

log = logging.getLogger("stepscope")

KINDS = ("gemm", "link")
PATIENCE_S = 300.0
"""How long to wait for the step at which to measure."""
MOST_NS = 200_000_000
"""A matrix product is repeated for at most this time."""
ROUNDS = 20
"""Repetitions of the matrix product, after one that is not counted."""
SIZES = {"cpu": 512, "gpu": 4096}
"""Rows and columns: long enough to time, 100 MB of a GPU's memory at most."""


class ActiveCheck:
    """One check: from the request to the answer. See `profiling.StepProfile` for the arguments."""

    def __init__(self, request: Check, tracker: StepTracker, base: Backend) -> None:
        self._request = request
        self._tracker = tracker
        self._base = base
        self._rank = base.identity().rank or 0
        self._over = threading.Event()
        self._results: dict[str, int] = {}
        self._problems: list[str] = []
        self._links: Links | None = None

    def run(self) -> Checked:
        """Measure, and wait for the results. To be called on a thread that may block."""
        try:
            self._run()
        except CannotMeasure as error:
            self._problems.append(str(error))
        except Exception as error:
            log.warning("an active check failed", exc_info=error)
            self._problems.append(f"{type(error).__name__}: {error}")
        finally:
            if self._links is not None:
                self._links.close()
        return Checked(self._rank, self._request.check, self._results, "; ".join(self._problems))

    def forget(self) -> None:
        """In a forked child: the check goes on in the parent."""
        self._over.set()

    def _run(self) -> None:
        request = self._request
        if unknown := [kind for kind in request.kinds if kind not in KINDS]:
            raise CannotMeasure(f"{unknown[0]!r} is not a check. Checks: {', '.join(KINDS)}")
        if not is_torch(self._base):
            raise CannotMeasure("active checks are only made in PyTorch")
        if request.at_step and self._tracker.number >= request.at_step:
            raise CannotMeasure(f"step {request.at_step} was over when the request came")
        if not request.at_step and "link" in request.kinds:
            raise CannotMeasure("links need a step at which all ranks measure; the ranks count steps differently")
        if "link" in request.kinds:
            self._links = Links(request.check, self._rank, request.peers)
        after_step: list[Any] = self._tracker.after_step  # type: ignore[attr-defined]
        after_step.append(self._step_ended)
        try:
            if self._links is not None:
                self._links.connect(PATIENCE_S, lambda: not self._over.is_set())
            if not self._over.wait(PATIENCE_S):
                raise CannotMeasure(f"step {request.at_step} did not end within {PATIENCE_S:g} s")
        finally:
            after_step.remove(self._step_ended)

    def _step_ended(self, step: int, _now_ns: int) -> None:
        """Called on the training thread, right after `step` ended."""
        if step < self._request.at_step or self._over.is_set():
            return
        self._tracker.interrupted()
        try:
            if self._request.at_step and step > self._request.at_step:
                raise CannotMeasure(f"step {self._request.at_step} was over before all was ready")
            if "gemm" in self._request.kinds:
                self._results |= time_gemm(self._base.target)
            if self._links is not None:
                self._results |= self._links.measure()
        except CannotMeasure as error:
            self._problems.append(str(error))
        except Exception as error:  # e.g. no memory left on the device; training must not notice
            self._problems.append(f"{type(error).__name__}: {error}")
        finally:
            self._tracker.resumed()
            self._over.set()


def time_gemm(target: str) -> dict[str, int]:
    """Times of a matrix product on this rank's device, in ns: `gemm_ns` is their median, `gemm_best_ns` the shortest;
    `gemm_flops` says how many operations it has.

    Neither random numbers nor gradients of training are touched.

    Raises:
        CannotMeasure: If there is no such measurement for this device.
    """
    import torch

    size = SIZES.get(target)
    if size is None:
        raise CannotMeasure("there is no matrix product for this device")
    device, kind = ("cuda", torch.bfloat16) if target == "gpu" else ("cpu", torch.float32)
    with torch.inference_mode(), torch.autocast(device, enabled=False):
        left = torch.arange(size * size, device=device).remainder(7).reshape(size, size).to(kind)
        out = torch.empty_like(left)
        times: list[int] = []
        end = perf_counter_ns() + MOST_NS
        while len(times) <= ROUNDS and (len(times) < 3 or perf_counter_ns() < end):
            _synchronize(device)
            began = perf_counter_ns()
            torch.mm(left, left, out=out)
            _synchronize(device)
            times.append(perf_counter_ns() - began)
    counted = times[1:]
    return {"gemm_ns": round(median(counted)), "gemm_best_ns": min(counted), "gemm_flops": 2 * size**3}


def _synchronize(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
