"""Jobs on Ascend devices, as text or databases, by a generator of such directories that is given by its path."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from simulated.faults import Fault
from simulated.truth import Truth

FIRST_STEP = 10
STEPS = 4


@dataclass
class AscendJob:
    """A job of the generator.

    Args:
        generator: Its path.
        form: `text` or `db`.
        ranks, tensor, stages: Layout.
        fault: What is wrong, and the options that say so; None for nothing.
        seed: Seed of its random numbers.
        steps: Number of steps.
    """

    generator: Path
    form: str
    ranks: int
    tensor: int
    stages: int
    fault: tuple[Fault, dict[str, str]] | None
    seed: int
    steps: int = STEPS

    @cached_property
    def truth(self) -> Truth:
        with_fault = self._total_ns(faulty=True)
        loss = (with_fault - self._total_ns(faulty=False)) / self.steps
        costs = [(self.fault[0], loss)] if self.fault else []
        name = f"{self.form}, tensor {self.tensor}, stages {self.stages}"
        return Truth(name, self.ranks, self.steps, with_fault / self.steps, loss, costs, FIRST_STEP)

    def _values(self, *, faulty: bool) -> dict[str, Any]:
        """Options of the generator."""
        found: dict[str, Any] = {
            "format": self.form, "ranks": self.ranks, "ranks-per-node": 8,
            "steps": self.steps, "first-step": FIRST_STEP, "ops-per-step": 120,
            "tp": self.tensor, "pp": self.stages, "seed": self.seed, "faults": "none",
        }  # fmt: skip
        if self.fault and faulty:
            found |= self.fault[1]
        return found

    def _total_ns(self, *, faulty: bool) -> int:
        """Length of all steps, by the model of the generator alone."""
        values = self._values(faulty=faulty)
        options = Namespace(**{name.replace("-", "_"): value for name, value in values.items()})
        options.fault_list = [] if options.faults == "none" else [options.faults]
        for name in ("slow_compute", "slow_dispatch", "slow_link"):
            setattr(options, name, _parsed(getattr(options, name, None)))
        cluster = _module(self.generator).Cluster(options)
        cluster.run()
        return int(max(rank.steps[-1][2] for rank in cluster.ranks) - min(rank.steps[0][1] for rank in cluster.ranks))

    def write(self, directory: Path) -> None:
        values = self._values(faulty=True).items()
        options = [text for name, value in values for text in (f"--{name}", str(value))]
        command = [sys.executable, str(self.generator), "--out", str(directory / "job"), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _parsed(text: str | None) -> tuple[Any, float] | None:
    """`3:1.3` or `0-1:0.4` as the generator understands it."""
    if text is None:
        return None
    who, _, factor = text.partition(":")
    ends = tuple(int(part) for part in who.split("-"))
    return (ends if len(ends) > 1 else ends[0], float(factor))


def _module(path: Path) -> Any:
    if "ascend_generator" not in sys.modules:
        spec = importlib.util.spec_from_file_location("ascend_generator", path)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["ascend_generator"] = module
        spec.loader.exec_module(module)
    return sys.modules["ascend_generator"]


def ascend_jobs(generator: Path, number: int) -> Iterator[tuple[str, AscendJob]]:
    """Jobs in turn: nothing wrong, a slow device, host or link, a low clock..., as text and as databases."""
    layouts = ((8, 1, 1), (8, 2, 1), (8, 1, 2), (16, 4, 1))
    for turn in range(number):
        form = ("text", "db")[turn // 8 % 2]
        ranks, tensor, stages = layouts[(turn + turn // 4) % 4]
        victim = (turn * 3 + 1) % ranks
        pair = (victim - victim % 2, victim - victim % 2 + 1)
        device, host = {"slow-compute": f"{victim}:1.3"}, {"slow-dispatch": f"{victim}:60"}
        link = {"faults": "slow_link", "slow-link": f"{pair[0]}-{pair[1]}:0.1"}
        who = (victim,)
        steps = (2, STEPS)[turn // 8 % 2]
        stall = Fault("outlier", "rank", who, steps=frozenset({steps - 1}), also=("dispatch",))
        faults: list[tuple[str, tuple[Fault, dict[str, str]] | None]] = [
            ("Ascend, healthy", None),
            ("Ascend, rank x1.3", (Fault("computing", "rank", who), {"faults": "slow_compute", **device})),
            ("Ascend, slow host", (Fault("dispatch", "rank", who), {"faults": "slow_dispatch", **host})),
            ("Ascend, slow link", (Fault("link", "link", pair), link)),
            ("Ascend, clock", (Fault("computing", "rank", who, reason="1450"), {"faults": "freq", **device})),
            ("Ascend, loader", (Fault("data_loading", "rank", who), {"faults": "dataloader", **host})),
            ("Ascend, garbage", (Fault("garbage_collection", "rank", who), {"faults": "gc", **host})),
            ("Ascend, stall in the last step", (stall, {"faults": "cgc", **host})),
        ]
        family, fault = faults[turn % len(faults)]
        number = steps if fault and fault[0] is stall else STEPS
        yield family, AscendJob(generator, form, ranks, tensor, stages, fault, turn + 1, number)
