"""Answers to give to rules, so that each uses all of its words."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from stepscope.advice import RULES, Finding, advise
from stepscope.advice.advise import completed
from stepscope.advice.finding import Platform
from stepscope.advice.rules.idle_time import CAUSES
from stepscope.advice.rules.slow_rank_reasons import OF_KIND
from stepscope.analysis.input.input_stages import BOTTLENECK, OBTAINING, PROCESSING, TRANSMISSION, UNKNOWN
from stepscope.analysis.input.loader import HANDOVER, HOST_CPU, NO_WORKERS, READING, WORKER_CPU
from stepscope.analysis.job.cluster_advice import COLUMNS as BY_FORMULA
from stepscope.analysis.job.cluster_advice import KINDS as ADVICE
from stepscope.analysis.job.cluster_advice import LINK, WITHIN
from stepscope.analysis.job.outlier_steps import KINDS as OUTLIERS
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.job.slow_experts import COLUMNS as SLOW_EXPERTS
from stepscope.analysis.job.slow_rank_causes import COLUMNS as CAUSE
from stepscope.analysis.job.slow_ranks import COLUMNS as SLOW_RANKS
from stepscope.analysis.memory.memory_hints import COLUMNS as HINT
from stepscope.analysis.memory.memory_hints import FRAGMENTATION, GROWTH, NEAR_CAPACITY
from stepscope.run import Run
from stepscope.tables import RANK_FIGURES, RANKS
from stepscope.tables.base import schema_of
from tests.advice import device_examples
from tests.advice.communication_examples import communication_examples
from tests.advice.hang_examples import hangs, unfinished_calls
from tests.advice.torch_examples import compiled_and_recorded, copied, recompilations, torch_examples


def breakdown() -> pl.DataFrame:
    rows = {"rank": [0], "step": [0], "window": ["host"], "window_ns": [1000], "memory_not_overlapped_ns": [500]}
    return pl.DataFrame(rows)


def idle(causes: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"rank": [0] * len(causes), "step": [0] * len(causes), "cause": causes, "idle_ns": 500})


def pipelines() -> list[dict[str, Any]]:
    """Few micro-batches with and without model chunks, uneven stages, waiting without a reason, unknown numbers."""
    common = {
        **{"stages": 4, "recorded_stages": 4, "micro_batches": 4, "model_chunks": 1, "micro_batches_by": "transfers"},
        "most_micro_batches": None,
        **{"ideal_ratio": 3 / 7, "waits_less": False, "bubble_ratio": 0.4, "bubble_ns": 400, "step_ns": 1000},
        **{"largest_work_factor": 1.0, "longest_stage": 0, "uneven_stage": None},
    }
    many = {"micro_batches": 97, "ideal_ratio": 0.03}
    uneven = {"largest_work_factor": 1.5, "longest_stage": 3, "uneven_stage": 3}
    changes = (
        *({}, uneven, {"model_chunks": 2, "ideal_ratio": 3 / 11}, {**many, **uneven}, many),
        *({**uneven, "micro_batches": None, "ideal_ratio": None}, {"micro_batches": None, "ideal_ratio": None}),
        {"micro_batches": None, "ideal_ratio": None, "most_micro_batches": 12},
        {"ideal_ratio": None, "waits_less": True},
    )
    stages = pl.DataFrame({"stage": [0, 1, 2, 3], "work_ns": [500, 500, 500, 700]})
    return [
        {
            "pipeline_schedule": pl.DataFrame([{**common, **change}]),
            "pipeline_stages": stages,
            "breakdown": breakdown(),
        }
        for change in changes
    ]


def extra_work() -> pl.DataFrame:
    """Extra work of a rank, of the last stage and of another one, which runs kernels more often
    than others, and one that runs them on larger shapes."""
    common = {
        "extra_ns": 8 * 10**6,
        "computing_ns": 40 * 10**6,
        "others_ns": 32 * 10**6,
        "steps": 3,
        "larger": False,
        "step_ns": 50 * 10**6,
    }
    saved = {"saving_ns": 4 * 10**6, "saving_low_ns": 3 * 10**6, "saving_high_ns": 5 * 10**6, "alone_ns": 2 * 10**6}
    known = {**common, **saved, "gone_ns": 7 * 10**6}
    rows = [
        {"stage": None, "last": False, "only": True, "names": ["norm"], "error_ratio": 0.0},
        {"stage": 3, "last": True, "only": True, "names": ["vocabulary", "loss"], "error_ratio": 0.0},
        {"stage": 1, "last": False, "only": False, "names": ["gemm"], "error_ratio": 0.1},
        {"stage": 0, "last": False, "only": False, "larger": True, "names": ["gemm"], "error_ratio": 0.0},
    ]
    return pl.DataFrame(
        [{"ranks": ranks, **known, **row} for ranks, row in zip(("0", "6, 7", "3", "1"), rows, strict=True)]
    )


def slowed_steps() -> pl.DataFrame:
    """Kernels and copies that take longer in some steps, on two ranks and on one."""
    row = {"slow_steps": [3, 4], "steps": 9, "factor": 1.5, "excess_ns": 600, "error_ratio": 0.1, "cost_ratio": 0.2}
    row |= {"cost_ns": 200, "saving_low_ns": 150, "saving_high_ns": 250}
    kinds = [(kind, ranks, names) for kind in ("computing", "memory") for ranks, names in ((2, ["gemm"]), (1, []))]
    return pl.DataFrame(
        [{**row, "kind": kind, "compared_ranks": ranks, "names": names} for kind, ranks, names in kinds]
    )


def expert_groups(load_by: str, *, moving: bool = False) -> pl.DataFrame:
    """Two uneven groups of experts."""
    return pl.DataFrame(
        {
            "group": ["a", "b"],
            "group_name": ["ep", "ep"],
            "ranks": ["0, 1", "2, 3"],
            "group_by": ["name", "name"],
            "load_by": [load_by, load_by],
            "imbalance_ratio": [1.5, 1.3],
            "max_rank": [1, 2],
            "max_load": [300, 260],
            "min_rank": [0, 3],
            "min_load": [100, 140],
            "mean_load": [200.0, 200.0],
            "call_imbalance_ratio": [2.5 if moving else 1.5, None],
            "calls": [8, None],
            "max_ranks": [2, None],
            "missing_ranks": [2, None],
        }
    )


def expert_costs() -> pl.DataFrame:
    """What spreading them evenly saves, by a replay that is far off."""
    return pl.DataFrame(
        {"group": ["a"], "ranks": ["0, 1"], "saving_ns": [5_000_000], "step_ns": [100_000_000], "error_ratio": [0.2]}
        | {"together_ns": [6_000_000]}
    )


COMPILED = dict.fromkeys(("rank", "step", "recorded_ns", "recorded_steps", "compile_ns", "times"), pl.Int64)


def stopping_calls(name: str) -> pl.DataFrame:
    """Calls of the host that stop its device, many in each step."""
    row = {"rank": 0, "name": name, "calls": 300, "total_ns": 500, "idle_ns": 400, "longest_ns": 1_000_000}
    row |= {"longest_start_ns": 9, "place": "train.py(3): step"}
    return pl.DataFrame([{**row, "step": step} for step in range(3)])


def stopped(name: str, analysis: str) -> dict[str, Any]:
    """Steps of which most is spent in such calls; they have them in some only."""
    one = breakdown().to_dicts()[0]
    steps = pl.DataFrame([{**one, "step": step} for step in range(9)])
    return {analysis: stopping_calls(name), "breakdown": steps}


def host_stalls(steps: Iterable[int], *, collections: bool = False) -> pl.DataFrame:
    """A stop of the host in each of some steps."""
    row = {"rank": 0, "start_ns": 9, "duration_ns": 900, "cause": "dispatch", "gap_ns": 950}
    told = {"function": "train.py(3): run", "collections": collections}
    return pl.DataFrame([{**row, "step": step, **told} for step in steps])


def fusible_operators() -> pl.DataFrame:
    """Two sequences, of which one was launched by known operators."""
    one = {"rank": 0, "count": 90, "span_ns": 900, "busy_ns": 300, "gaps_ns": 600, "bound": "host", "share_ratio": 0.1}
    rows = [
        {"sequence": "Mul, Add, Cast", "operators": "mul, add, to", "place": "train.py(3): norm", "first_start_ns": 5},
        {"sequence": "Sub, Exp, Cast", "operators": None, "place": None, "first_start_ns": 6},
    ]
    return pl.DataFrame([{**one, **row} for row in rows])


def replaceable_operators() -> pl.DataFrame:
    """Attention of single operators, and an optimizer."""
    row = {"rank": 0, "sequence": "matmul, softmax, matmul", "count": 9, "operators": 27, "host_ns": 500}
    patterns = ("attention", "optimizer AdamW", "unknown")
    return pl.DataFrame([{**row, "pattern": one, "first_start_ns": 9, "place": "train.py(3): run"} for one in patterns])


def launch_waits() -> pl.DataFrame:
    """A rank that waits after each launch."""
    row = {"rank": 0, "launches": 90, "followed": 80, "followed_ratio": 0.9, "long_kernels": 90, "blocking": 0}
    row |= {"wait_ns": 500, "idle_ns": 400, "name": "aclrtSynchronizeStream", "first_start_ns": 9, "longest_ns": 9}
    return pl.DataFrame([{**row, "step": step, "place": "train.py(3): step"} for step in range(9)])


def fast_ranks() -> pl.DataFrame:
    row = {"ranks": "1", "others": 7, "own_ns": 700, "others_ns": 900, "if_alike_ns": 180, "if_alike_ratio": 0.2}
    return pl.DataFrame([{**row, "error_ratio": 0.0}])


def slowdown_causes() -> pl.DataFrame:
    row = {"unit": "1", "ranks": "0", "factor": 1.5, "correlation": 0.9, "explained": 0.5, "mended_ns": None}
    row |= {
        "is_alone": None,
        "is_last": None,
        "is_named": True,
        "slowdown_factor": 1.5,
        "error_ratio": -0.1,
        "replayed_ns": 1000,
    }
    row |= dict.fromkeys(("saving_ns", "saving_low_ns", "saving_high_ns"), 200)
    alone = [{**row, "cause": "stage", "is_alone": one, "is_last": two} for one, two in ((0, 1), (1, 1), (1, 0))]
    others = [{**row, "cause": cause} for cause in ("sequence", "replica", "worker", "communication", "unknown")]
    return pl.DataFrame([*alone, *others], infer_schema_length=None).cast({"mended_ns": pl.Int64})


def lost(causes: list[str]) -> pl.DataFrame:
    """What each cause cost: half of the recording, in every step."""
    row = {"rank": 0, "steps": 5, "lost_ns": 2500, "recorded_ns": 5000, "lost_ratio": 0.5, "mean_ns": 500}
    row |= {"median_ns": 500, "stalled_steps": [], "stalled_ns": 0, "stalled_ratio": 0.0, "period": None}
    row |= {"paused_ns": 2500, "paused_ratio": 0.5}
    return pl.DataFrame([{**row, "cause": cause} for cause in causes])


def outliers(same: bool | None = None) -> pl.DataFrame:
    """A long step of each kind, in which one of two ranks is late."""
    row = {"rank": 0, "alike": 1, "window_ns": 900, "median_ns": 100, "excess_ns": 800, "kind_ns": 700, "steps": 9}
    row |= {"share_ratio": 0.5, "recorded_ns": 1800, "is_first": False, "same_work": same}
    rows = [{"step": 3 + number, "kind": kind, **row} for number, kind in enumerate(OUTLIERS)]
    return pl.DataFrame(rows, schema_overrides={"same_work": pl.Boolean})


def loader(limited_by: str | None, workers: int | None) -> pl.DataFrame:
    row: dict[str, Any] = dict.fromkeys(("processors_per_worker", "ready", "queue_capacity", "handed_ratio"))
    row |= {"rank": 0, "loader": "Images", "limited_by": limited_by, "workers": workers, "steps": 5}
    return pl.DataFrame([{**row, "wait_ns": 100, "mean_wait_ns": 100.0, "median_wait_ns": 100, "wait_ratio": 0.5}])


LOADERS = [
    loader(None, None),
    loader(NO_WORKERS, 0),
    *(loader(by, 2) for by in (HANDOVER, WORKER_CPU, HOST_CPU, READING)),
]


def stages(**verdicts: str) -> pl.DataFrame:
    numbers = {"empty": 5, "full": 0, "batches": 10, "empty_ratio": 0.5, "mean_total_ns": 50, "interval_ns": 100}
    rows = [
        {"rank": 0, "stage": stage, "verdict": verdict, "queue": "get_next", **numbers}
        for stage, verdict in verdicts.items()
    ]
    return pl.DataFrame(rows)


BATCHES = pl.DataFrame({"rank": [0], "queue": ["get_next"], "number": [2], "queue_size": [0], "duration_ns": [9]})


def hint(kind: str) -> pl.DataFrame:
    known = {"rank": 0, "kind": kind, "ratio": 0.5, "steps": 5}
    sizes = dict.fromkeys(("bytes", "per_step_bytes", "peak_bytes", "capacity_bytes", "forced_bytes"), 10**9)
    return pl.DataFrame([{**known, **sizes}], schema=schema_of(HINT))


def slow_ranks() -> pl.DataFrame:
    """A rank slow at each kind of work, and units of ranks that are slow at some time."""
    row: dict[str, Any] = {
        "rank": 0,
        "ranks": "0",
        "unit_kind": "rank",
        "unit": "0",
        "pattern": "steady",
        "period": None,
    }
    row |= dict.fromkeys(("cost_ns", "saving_low_ns", "saving_high_ns", "alone_ns", "excess_ns"), 5)
    row |= {"cost_ratio": 0.1, "typical_ns": 9, "times_last": 3, "calls": 3, "steps": 1, "steps_late": 1, "score": 9.0}
    row |= {"error_ratio": 0.0, "unrecorded_ranks": 0, "slow_steps": [1], "counted_steps": 1}
    kinds = [{**row, "kind": kind, "unrecorded_ranks": number % 3} for number, kind in enumerate(WORK)]
    host = {
        **row,
        "kind": WORK[0],
        "unit_kind": "host",
        "unit": "_h",
        "ranks": "0, 1",
        "steps": 9,
        "slow_steps": [1, 2],
    }
    times = [
        {**host, "pattern": pattern, "error_ratio": 0.1} for pattern in ("since", "until", "sometimes", "rotating")
    ]
    return pl.DataFrame([*kinds, *times], schema=schema_of(SLOW_RANKS))


def slow_experts() -> pl.DataFrame:
    """Experts that have more work, but not all that they take longer for."""
    row = {"rank": 0, "cause": "both", "group": "a", "ranks": "0, 1", "load_ratio": 1.5, "slow_factor": 2.0}
    row |= {"share_ratio": 1.0, "explained_ratio": 0.5, "levelled_ratio": 0.5}
    return pl.DataFrame([row], schema=schema_of(SLOW_EXPERTS))


def slow_rank_causes(kind: str, reason: str, sized_by: str | None = "shapes") -> pl.DataFrame:
    row: dict[str, Any] = dict.fromkeys(schema_of(CAUSE), 7.0)
    row |= {"rank": 0, "kind": kind, "reason": reason, "names": ["_a", "_b"], "place": "_.x(3): _f", "counter": "_mhz"}
    row |= {"named_ns": 5, "longest_ns": 5, "longest_step": 2, "since_step": 2, "sized_by": sized_by}
    return pl.DataFrame([row], schema=schema_of(CAUSE))


def dataset() -> pl.DataFrame:
    row = {"rank": 0, "pipeline": 0, "parent": None, "depth": 1, "children": [1], "samples": 9, "bottleneck": True}
    row |= {"usage_ratio": 0.2, "workers": 1, "processors_per_worker": 0.1, "observations": [], "chain": "a -> b"}
    types = ("GeneratorOp", "MapOp", "BatchOp", "ShuffleOp", "SkipOp", "DataQueueOp", "FilterOp", "TFReaderOp")
    rows = [{**row, "operator": f"{kind}_{n}", "number": n, "type": kind} for n, kind in enumerate(types)]
    rows[-1]["children"] = []
    lists = {"parent": pl.String, "observations": pl.List(pl.String), "children": pl.List(pl.Int64)}
    return pl.DataFrame(rows, schema_overrides=lists)


def advice_by_formula() -> pl.DataFrame:
    """What MindInsight advises about, twice where several ranks, links or stages may be named."""
    row = {"off_ratio": 0.5, "limit_ratio": 0.2, "mean_of": 4, "interval_ns": 10**6, "flops_per_s": 1e12}
    row |= {"bandwidth_bytes_per_s": 1e9, "step_flops": 1e9, "summed_ratio": 0.6, "transport": "_net", "stage": 1}
    rows = [{**row, "advice": kind, "rank": 0, "source": 0, "destination": 1} for kind in ADVICE]
    rows += [{**rows[-1], "advice": kind, "destination": 2, "stage": 2} for kind in (LINK, WITHIN)]
    return pl.DataFrame(rows, schema=schema_of(BY_FORMULA))


OF_FORMULAS = ("step-interval", "flops-per-second", "cluster-link", "communication-rate", "pipeline-flops")
"""Rules by the formulas of MindInsight."""

LINKS = {"link": "periodic", "nic": "since", "host": "until", "hosts": "once", "links": "steady"}
"""Units of slow links, each with another pattern."""


@cache
def _answers(platform: Platform) -> Mapping[str, list[dict[str, Any]]]:
    """Answers to give to each rule, so that it uses each of its texts."""
    ranks, steps, shares = ranks_of(platform), breakdown(), {"rank": [0], "step": [0], "wait_ns": [5]}
    sent = pl.DataFrame({"ranks": ["0"], "transmit_ns": [9], "best_ns": [5], "exposed_ns": [400]})
    late = pl.DataFrame({"rank": [1], "root_rank": [0], "mean_ns": [9]})
    link = {"rank_a": 0, "rank_b": 1, "transport": "net", "bandwidth_bytes_per_s": 1e9, "typical_bytes_per_s": 2e9}
    link |= {"ranks": "0, 1", "host": "a", "links": 3, "bandwidth_ratio": 0.5, "cost_ns": 5}
    replayed = {"exposed_ns": 4, "saving_low_ns": 3, "saving_high_ns": 6, "alone_ns": 4, "error_ratio": 0.06}
    times = {"pattern": "periodic", "steps": 9, "slow_steps": [1, 4, 7], "period": 3}
    group = {"group": "g", "group_name": None, "ranks": "0, 1", "source": None, "cost_ns": 500, "slowdown_factor": 2.0}
    group |= {**replayed, **times, "score": 4.0}
    nothing = {"segments": None, "arrival": None}
    by_formula = [
        {
            "cluster_advice": advice_by_formula(),
            "rank_flops": pl.DataFrame({"rank": [0], "stage": [1], "found_by": ["stated"]}),
            "rank_means": pl.DataFrame({"rank": [0], "stage": [1]}),
            "communication_totals": pl.LazyFrame({"rank": [0]}),
            "device_steps": pl.DataFrame({"rank": [0], "step": [1]}),
            **{"slow_ranks": slow, "slow_links": None, "breakdown": None},
        }
        for slow in (None, slow_ranks().clear())
    ]
    return {
        "slow-rank": [
            {"slow_ranks": slow_ranks(), "breakdown": steps},
            {"slow_ranks": slow_ranks(), "breakdown": steps, "slow_experts": slow_experts()},
            *(
                {"slow_ranks": slow_ranks(), "breakdown": steps, "slow_rank_causes": slow_rank_causes(*of)}
                for kind, reasons in OF_KIND.items()
                for reason in reasons
                for of in ((kind, reason), (kind, reason, "grid"), (kind, reason, "tokens"))
            ),
        ],
        "slow-link": [
            {
                "slow_links": pl.DataFrame(
                    [{**link, **replayed, **times, "unit": unit, "pattern": pattern} for unit, pattern in LINKS.items()]
                ),
                "breakdown": steps,
                **nothing,
            }
        ],
        "slow-group": [
            {
                "slow_groups": pl.DataFrame(
                    [{**group, "beside": beside, "source": 1} for beside in ("others", "steps")]
                ),
                "breakdown": steps,
                "slow_links": None,
                **nothing,
            }
        ],
        "idle-time": [
            {"lost_time": lost([*CAUSES, "dependency"]), "breakdown": steps, "loader": one, "idle_functions": None}
            for one in LOADERS
        ]
        + [compiled_and_recorded(lost(["dispatch"]), steps)],
        "long-step": [{"outlier_steps": outliers(same), "breakdown": steps} for same in (None, True)],
        "checkpoint": [{"lost_time": lost(["checkpoint"]), "breakdown": steps}],
        "exposed-communication": [
            {
                "segments": pl.DataFrame({**shares, "transmit_ns": [transmit], "unsplit_ns": [500 - transmit]}),
                **{"breakdown": steps, "slow_links": None, "slow_groups": None},
                **{"transmission": sent, "waits": late, "ranks": ranks.with_columns(host=pl.lit(host))},
            }
            for transmit, sent, late, host in (
                (0, None, None, None),
                (500, None, late, None),
                (500, sent, late, None),
                (500, sent, late, "a"),
            )
        ]
        + [
            {
                "segments": pl.DataFrame({**shares, "transmit_ns": [0], "unsplit_ns": [500]}),
                **{"breakdown": steps, "slow_links": None, "slow_groups": None, "transmission": None, "waits": None},
                "ranks": pl.concat([ranks, ranks.with_columns(rank=pl.lit(1, pl.Int32))]).with_columns(world_size=2),
            }
        ],
        "memory-copies": copied(steps),
        "late-start": [
            {
                "late_starts": pl.DataFrame(
                    {
                        **{
                            "rank": [1],
                            "step": [3],
                            "start_late_ns": [900],
                            "waited_ns": [1000],
                            "waited_ratio": [0.1],
                        },
                        **{"calls_last": [2], "calls": [5], "steps": [1]},
                    }
                ),
                "slow_ranks": None,
            }
        ],
        "single-pause": [
            {"single_pauses": pl.DataFrame({"rank": [0], "start_ns": [0], "duration_ns": [900], "recorded_ns": [1000]})}
        ],
        "compile-time": [
            {
                "compile_time": pl.DataFrame(
                    {
                        **{"rank": [0] * 3, "step": [1, 2, 3], "compile_ns": [500, 400, 300], "times": [1] * 3},
                        **{"recorded_steps": [9] * 3, "recorded_ns": [2000] * 3},
                    }
                )
            },
            {
                "compile_time": pl.DataFrame(schema=COMPILED),
                **stopped("aclopCompileAndExecute", "compile_calls"),
            },
            *recompilations(platform.framework),
        ],
        "garbage-collection": [
            {
                **stopped("GC", "garbage_collections"),
                "lost_time": lost(["garbage_collection"]).with_columns(stalled_ns=stalled),
            }
            for stalled in (0, 2000)
        ],
        "replaceable-operators": [{"replaceable_operators": replaceable_operators(), "breakdown": steps}],
        "fusible-operators": [{**stopped("", "unused"), "fusible_operators": fusible_operators()}],
        "sync-batch-norm": [stopped("SyncBatchNorm", "sync_batch_norms")],
        "host-stall": [
            {**stopped("", "unused"), "host_stalls": stalls}
            for stalls in (host_stalls([3]), host_stalls(range(1, 9)), host_stalls([3], collections=True))
        ],
        "launch-wait": [
            {
                **stopped("", "unused"),
                "launch_waits": launch_waits(),
                "ranks": ranks.with_columns(environment=pl.lit(text)),
            }
            for text in ("{}", '{"CUDA_LAUNCH_BLOCKING": "1"}')
        ],
        "memory-calls": [
            {**stopped("malloc", "memory_calls"), "memory_peak": peak}
            for peak in (
                None,
                *(pl.DataFrame({"rank": [0], "device": [0], "used_ratio": [ratio]}) for ratio in (0.5, 0.95)),
            )
        ]
        + [stopped("cuMemMap", "memory_calls")],
        "iteration-interval": [
            {
                "device_steps": pl.DataFrame({"rank": [0], "step": [1]}),
                "step_trace": pl.DataFrame(
                    {
                        **{"rank": [0], "step": [1], "start_ns": [0]},
                        **{"interval_ns": [10**9], "step_ns": [10**9]},
                    }
                ),
                "input_stages": None,
            }
        ],
        "host-queue": [
            {
                "input_stages": stages(**{PROCESSING: BOTTLENECK}),
                **{"input_queues": pl.DataFrame(), "input_batches": pl.DataFrame(), "input_operators": None},
                "idle": idle([]),
            },
            {
                "input_stages": stages(**{PROCESSING: BOTTLENECK}),
                **{"input_queues": pl.DataFrame(), "input_batches": pl.DataFrame(), "idle": idle([])},
                "input_operators": dataset().with_columns(chain=pl.lit("ShuffleOp_3")),
            },
        ],
        "data-queue": [
            {"input_stages": stages(**verdicts), "input_batches": BATCHES}
            for verdicts in (
                {PROCESSING: UNKNOWN, TRANSMISSION: BOTTLENECK},
                {PROCESSING: "healthy", TRANSMISSION: BOTTLENECK},
                {PROCESSING: "healthy", OBTAINING: BOTTLENECK},
            )
        ],
        "pipeline-bottleneck": [{"input_operators": dataset(), "input_stages": None}],
        "data-loader": [{"loader": one, "idle": None} for one in LOADERS],
        "cpu-busy": [
            {
                "cpu_summary": pl.DataFrame(
                    {"rank": [0], "scope": ["host"], "mean_idle_ratio": [0.05], "processors": [2]}
                    | {f"mean_{name}": [0.5] for name in ("user_ratio", "system_ratio", "io_ratio", "busy_processors")}
                )
            }
        ],
        "ai-cpu": [
            {
                "rank_figures": RANK_FIGURES.frame(
                    rank=[0], name=["recommendation"], text=['{"extend": ["Fuse"]}']
                ).lazy(),
                "ai_cpu_operators": device_examples.ai_cpu_operators(),
                "breakdown": steps,
            }
        ],
        "slowed-steps": [{"slowed_steps": slowed_steps(), "breakdown": steps}],
        "expert-load": [
            {
                **{"expert_groups": expert_groups(by), "expert_costs": expert_costs(), "breakdown": steps},
                **{"slow_ranks": slow_ranks(), "slow_experts": slow_experts()},
            }
            for by in ("tokens", "received", "time")
        ]
        + [
            {"expert_groups": expert_groups(by, moving=True), "expert_costs": expert_costs(), "breakdown": steps}
            for by in ("tokens", "received", "time")
        ],
        "block-dim": [{"block_dims": device_examples.block_dims(), "breakdown": steps}],
        "dynamic-shape": [
            {
                "dynamic_operators": device_examples.dynamic_operators(),
                "compile_time": device_examples.compile_time(),
                "breakdown": steps,
            }
        ],
        "environment": device_examples.environments(platform.device, platform.framework),
        "low-clock": [
            {
                "frequencies": pl.DataFrame(
                    {"rank": [0, 1], "name": ["c"] * 2, "nominal_mhz": [1800.0] * 2, "lowest_mhz": [1000.0] * 2}
                ),
                "rank_counters": pl.DataFrame({"rank": [0, 1], "name": ["c"] * 2, "busy_mean": [1500.0, 1400.0]}),
                "slow_ranks": None,
                "throttled_operators": None if stated is None else device_examples.throttled(stated=stated),
                "breakdown": device_examples.two_steps(),
            }
            for stated in (None, True, False)
        ],
        "operator-bound": [{"operator_bounds": device_examples.bounds(), "breakdown": steps}],
        "operator-efficiency": [{"operator_efficiency": device_examples.efficiency(), "breakdown": steps}],
        "fast-rank": [{"fast_ranks": fast_ranks(), "breakdown": steps}],
        "pipeline-bubble": pipelines(),
        "uneven-work": [
            {"slowdown_causes": slowdown_causes(), "slow_ranks": None, "breakdown": steps},
            {"slowdown_causes": None, "slow_ranks": None, "breakdown": steps, "extra_work": extra_work()},
        ],
        **dict.fromkeys(OF_FORMULAS, by_formula),
        **torch_examples(),
        **communication_examples(),
        "hang": [{"hangs": hangs(), "unfinished_calls": unfinished_calls()}],
        "memory-capacity": [{"memory_hints": hint(NEAR_CAPACITY)}],
        "memory-leak": [{"memory_hints": hint(GROWTH)}],
        "memory-fragmentation": [{"memory_hints": hint(FRAGMENTATION)}],
    }


def ranks_of(platform: Platform) -> pl.LazyFrame:
    """Two ranks on a platform."""
    return RANKS.frame(rank=[0, 1], framework=[platform.framework] * 2, device_kind=[platform.device] * 2).lazy()


def examples(rule: str, platform: Platform) -> list[dict[str, Any]]:
    """Answers to give to a rule, so that it uses each of its texts."""
    taken = inspect.signature(RULES[rule].function).parameters
    answers = [{name: value for name, value in one.items() if name in taken} for one in _answers(platform)[rule]]
    return [{"ranks": ranks_of(platform), **one} if "ranks" in taken else one for one in answers]


@cache
def findings(rule: str, platform: Platform) -> Sequence[Finding]:
    """What a rule finds on a platform, in the example answers."""
    found = [finding for given in examples(rule, platform) for finding in RULES[rule].function(**given)]
    return [completed(finding, RULES[rule], ranks_of(platform), "step") for finding in found]


Tables = dict[str, pl.DataFrame]


def found(ranks: dict[int, Tables] | Tables, rule: str) -> list[Finding]:
    """What a rule finds in the tables of each rank, or of the only one."""
    by_rank = ranks if all(isinstance(key, int) for key in ranks) else {0: ranks}
    return [finding for finding in advise(Run.from_frames(by_rank)) if finding.rule == rule]
