"""How each file of HTA's results compares with answers here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import mean

import polars as pl

from stepscope.analysis.device.launches import Limits
from tests.golden_hta.compared import Given, Value, described, number, us
from tests.golden_hta.raw_traces import RawRank, idle_gaps, launching_operators, queue_lengths, union

CAUSES = {"host_wait": ["host"], "kernel_wait": ["kernel"], "other": ["other", "unknown"]}
ALL = Limits(call_ns=-1, delay_ns=math.inf)


def launches(given: Given) -> Iterator[Value]:
    """Every launch by its correlation, in the launch's rank."""
    rank = int(given.file.stem.rpartition("_r")[2])
    theirs = {int(row["correlation"]): row for row in given.rows()}
    if not theirs:
        return
    found = given.run.select(ranks=rank).analyse("launch_outliers", limits=ALL, limit=1_000_000)
    ours = {row["correlation"]: row for row in found.iter_rows(named=True)}
    calls = given.raw[rank].calls
    pairs = {"cpu_duration": "call_ns", "gpu_duration": "duration_ns", "launch_delay": "delay_ns"}
    for key, row in ours.items():
        for column, own in pairs.items():
            of = f"{key}"
            if key in theirs:
                yield Value(of, column, number(theirs[key][column]), us(row[own]))
            else:
                is_driver = calls[key].category == "cuda_driver"
                right = _launch(given.raw[rank], key)[column]
                yield Value(of, column, None, us(row[own]), fault="driver calls" if is_driver else "", right=right)
    for key in theirs.keys() - ours.keys():
        yield Value(f"{key}", "correlation", float(key), None)


def _launch(raw: RawRank, correlation: int) -> dict[str, float]:
    (work,) = (one for one in raw.work if int(one.args["correlation"]) == correlation)
    call = raw.calls[correlation]
    delay = max(work.start - call.end, 0)
    return {"cpu_duration": call.duration, "gpu_duration": work.duration, "launch_delay": delay}


def queues(given: Given) -> Iterator[Value]:
    """Statistics over all changes, and our sums over time."""
    changed = given.run.analyse("queue_lengths", points=0)
    sums = given.run.analyse("queues")
    order = changed.select("rank", "stream").unique(maintain_order=True).rows()
    for row, (rank, stream) in zip(given.rows(skip=1), order, strict=True):
        of = f"rank {rank} stream {stream}"
        here = (pl.col("rank") == rank) & (pl.col("stream") == stream)
        lengths = [float(one) for one in changed.filter(here)["max_length"]]
        right = described([float(one) for one in queue_lengths(given.raw[rank], stream, up_first=True)])
        latest = described([float(one) for one in queue_lengths(given.raw[rank], stream, up_first=False)])
        for column, ours in described(lengths).items():
            theirs = number(row[column])
            between = (
                theirs is not None and latest[column] is not None and _between(latest[column], theirs, right[column])
            )
            excused = (
                {"fault": "order within a microsecond", "right": right[column], "wrong": theirs} if between else {}
            )
            yield Value(of, column, theirs, ours, **({} if theirs == ours else excused))  # type: ignore[arg-type]
        (total,) = sums.filter(here).to_dicts()
        yield Value(of, "launches", len(lengths) / 2, total["launches"])
        yield Value(of, "max_length", max(lengths), total["max_length"])


def _between(one: float | None, value: float, other: float | None) -> bool:
    if one is None or other is None:
        return False
    slack = 0.02  # a deviation is no monotonous function of the order
    return min(one, other) * (1 - slack) <= value <= max(one, other) * (1 + slack)


def copies(given: Given) -> Iterator[Value]:
    """Bandwidth of single copies by direction; HTA does not tell pinned from pageable memory."""
    exact = given.run.analyse("copies")
    groups = exact.group_by("rank", "direction").agg(pl.all()).sort(
        "rank", pl.col("direction").replace_strict(_ORDER)
    )  # fmt: skip
    for row, ours in zip(given.rows(skip=1), groups.iter_rows(named=True), strict=True):
        of = f"rank {ours['rank']} {ours['direction']}"
        work = [
            one for one in given.raw[ours["rank"]].work if _ORDER.get(_direction(one.name)) == _ORDER[ours["direction"]]
        ]
        rates = [float(one.args["bytes"] / one.exact_us) / 1000 for one in work]
        written = [float(one.args["memory bandwidth (GB/s)"]) for one in work]
        right, wrong = described(rates), described(written)
        counts = ours["count"]
        merged = {
            "count": float(sum(counts)),
            "mean": sum(n * rate for n, rate in zip(counts, ours["mean_bytes_per_s"], strict=True)) / sum(counts) / 1e9,
            "min": min(ours["min_bytes_per_s"]) / 1e9,
            "max": max(ours["max_bytes_per_s"]) / 1e9,
        }
        if len(counts) == 1:
            merged |= {"std": ours["std_bytes_per_s"][0] and ours["std_bytes_per_s"][0] / 1e9}
        for column, value in merged.items():
            theirs = number(row[column])
            same = Value(of, column, theirs, value).is_equal
            fault = {} if same else {"fault": "rate of other times", "right": right[column], "wrong": wrong[column]}
            yield Value(of, column, theirs, value, **fault)  # type: ignore[arg-type]
        slowest = sum(float(one.args["bytes"]) for one in work) / sum(float(one.exact_us) + 1 for one in work) / 1000
        if exact["tick_ns"].max() == 1000 and len(counts) == 1:
            yield Value(of, "least", slowest, ours["least_bytes_per_s"][0] / 1e9)


_ORDER = {"device to device": 0, "device to host": 1, "host to device": 2, "fill": 3}


def _direction(name: str) -> str:
    words = {"DtoD": "device to device", "DtoH": "device to host", "HtoD": "host to device", "Memset": "fill"}
    return next((direction for word, direction in words.items() if word in name), "")


def idle_totals(given: Given) -> Iterator[Value]:
    """Idle time by stream and cause, and the share of it."""
    for row in given.rows():
        rank, stream, category = int(row["rank"]), int(row["stream"]), row["idle_category"]
        yield from _idle(given, f"rank {rank} stream {stream}", rank, stream, category, {"idle_time": row["idle_time"]})


def idle_statistics(given: Given) -> Iterator[Value]:
    """Statistics of the same gaps; the file has no causes, but the order of the other one."""
    other = Given(given.name, given.file.with_name("idle_time_breakdown_0.csv"), given.run, given.raw)
    for row, first in zip(given.rows(), other.rows(), strict=True):
        rank, stream, category = int(row["rank"]), int(row["stream"]), first["idle_category"]
        cells = {name: row[name] for name in ("count", "mean", "std", "min", "max")}
        yield from _idle(given, f"rank {rank} stream {stream}", rank, stream, category, cells)


def _idle(given: Given, of: str, rank: int, stream: int, category: str, cells: dict[str, str]) -> Iterator[Value]:
    here = (pl.col("rank") == rank) & (pl.col("stream") == stream) & pl.col("cause").is_in(CAUSES[category])
    found = given.run.analyse("stream_idle").filter(here)
    raw = given.raw[rank]
    gaps = idle_gaps(raw, stream, skip_overlaps=True)[category]
    asis = idle_gaps(raw, stream, skip_overlaps=False)[category]
    blamed = idle_gaps(raw, stream, skip_overlaps=False, blame_host=True)[category]
    if found.height > 1:
        found = found.head(0) if category != "other" else found
    for column, text in cells.items():
        theirs = number(text)
        if column == "idle_time":
            value, right, overlapping, host = (
                us(int(found["total_ns"].sum())),
                *map(float, map(sum, (gaps, asis, blamed))),
            )
        else:
            if found.is_empty():
                yield Value(of, f"{category} {column}", theirs or None, None)
                continue
            (one,) = found.to_dicts()
            value = float(one["count"]) if column == "count" else us(one[f"{column}_ns"])
            right, overlapping, host = (described([float(x) for x in some])[column] for some in (gaps, asis, blamed))
        within = 0.006 if column in ("mean", "std") else 1e-6
        for fault, wrong in (("overlap as idle time", overlapping), ("launch not recorded", host)):
            excused = Value(of, f"{category} {column}", theirs, value, within, fault, right, wrong)
            if excused.is_explained:
                break
        same = Value(of, f"{category} {column}", theirs, value, within)
        yield same if same.is_equal else excused


def temporal(given: Given) -> Iterator[Value]:
    """Idle, computing and other time of each rank."""
    rows = {row["rank"]: row for row in given.run.analyse("breakdown", whole_recording=True).iter_rows(named=True)}
    for theirs in given.rows():
        rank = int(theirs["rank"])
        ours, of = rows[rank], f"rank {rank}"
        exposed = ours["communication_not_overlapped_ns"] + ours["memory_not_overlapped_ns"]
        times = {"idle": ours["free_ns"], "compute": ours["computing_ns"], "non_compute": exposed}
        right, wrong = (_times(given.raw[rank], by_name=by_name) for by_name in (False, True))
        for name, value in times.items():
            yield _split(
                of, f"{name}_time(us)", number(theirs[f"{name}_time(us)"]), us(value), right[name], wrong[name]
            )
        yield Value(of, "kernel_time(us)", number(theirs["kernel_time(us)"]), us(ours["window_ns"]), 1.0)


def _split(of: str, column: str, theirs: float | None, ours: float | None, right: float, wrong: float) -> Value:
    same = Value(of, column, theirs, ours, 1.0)
    return same if same.is_equal else Value(of, column, theirs, ours, 1.0, "communication by name", right, wrong)


def _times(raw: RawRank, *, by_name: bool) -> dict[str, float]:
    """The parts of a rank's time; communication is told by `nccl` in the name alone, and host operators with names of
    kernels count, as HTA does, or neither."""
    words = ("nccl",) if by_name else ("nccl", "multimem_all_reduce")
    spans: dict[str, list[tuple[int, int]]] = {"comm": [], "memory": [], "compute": []}
    names = {one.name for one in raw.work} if by_name else set()
    spans["compute"] += [(one.start, one.end) for one in raw.host if one.name in names]
    for one in raw.work:
        kind = "memory" if one.category != "kernel" else "comm" if any(w in one.name for w in words) else "compute"
        spans[kind].append((one.start, one.start + one.duration))
    every = [span for some in spans.values() for span in some]
    busy, compute = union(every), union(spans["compute"])
    window = max(end for _, end in every) - min(start for start, _ in every)
    comm = union(spans["comm"])
    overlap = compute + comm - union([*spans["compute"], *spans["comm"]])
    return {
        "idle": window - busy, "compute": compute, "non_compute": busy - compute, "comm": comm, "overlap": overlap,
        "memory": busy - union([*spans["compute"], *spans["comm"]]),
    }  # fmt: skip


def overlap(given: Given) -> Iterator[Value]:
    """Communication hidden by computing, in percent."""
    rows = given.rows()
    if not rows or not any(row["comp_comm_overlap_pctg"] for row in rows):
        return
    ours = {row["rank"]: row for row in given.run.analyse("breakdown", whole_recording=True).iter_rows(named=True)}
    for row in rows:
        rank = int(row["rank"])
        share = 100 * ours[rank]["overlapped_ns"] / ours[rank]["communication_ns"]
        right, wrong = (_times(given.raw[rank], by_name=by_name) for by_name in (False, True))
        theirs = number(row["comp_comm_overlap_pctg"])
        same = Value(f"rank {rank}", "overlap", theirs, share, 0.0051)
        shares = [100 * one["overlap"] / one["comm"] for one in (right, wrong)]
        yield (
            same
            if same.is_equal
            else Value(f"rank {rank}", "overlap", theirs, share, 0.02, "communication by name", *shares)
        )


def kernel_types(given: Given) -> Iterator[Value]:
    """Time by type of kernel and overlap, over all ranks, as sums of ours."""
    rows = given.run.analyse("breakdown", whole_recording=True) if given.rows() else None
    if rows is None:
        return
    theirs = {row["kernel_type"]: float(row["sum"]) for row in given.rows()}
    both = {key: value for key, value in theirs.items() if "COMPUTATION" in key and "COMMUNICATION" in key}
    sums = {
        "computing_ns": sum(value for key, value in theirs.items() if "COMPUTATION" in key),
        "overlapped_ns": sum(both.values()),
        "communication_ns": sum(value for key, value in theirs.items() if "COMMUNICATION" in key),
        "memory_ns": sum(value for key, value in theirs.items() if "MEMORY" in key),
        "memory_not_overlapped_ns": theirs.get("MEMORY", 0.0),
    }
    names = {
        "computing_ns": "compute",
        "overlapped_ns": "overlap",
        "communication_ns": "comm",
        "memory_not_overlapped_ns": "memory",
    }
    for column, value in sums.items():
        ours = us(int(rows[column].sum()))
        same = Value("all ranks", column, value, ours, rows.height)
        if same.is_equal or column not in names:
            yield same
            continue
        right, wrong = (
            sum(_times(raw, by_name=by_name)[names[column]] for raw in given.raw.values()) for by_name in (False, True)
        )
        yield Value("all ranks", column, value, ours, 1.0, "communication by name", right, wrong)


def kernels(given: Given) -> Iterator[Value]:
    """Time by kernel, with those that HTA puts together as `others`."""
    rows = given.rows()
    if not rows:
        return
    totals = given.run.analyse("kernel_totals")
    for rank in sorted({int(row["rank"]) for row in rows}):
        own = [row for row in rows if int(row["rank"]) == rank]
        ours = {row["name"]: row for row in totals.filter(pl.col("rank") == rank).iter_rows(named=True)}
        raw = given.raw[rank]
        kinds = {row["kernel_type"] for row in own if row["name"] == "others"}
        single = {row["kernel_type"] for row in own} - kinds
        for row in own:
            of = f"rank {rank} {row['name']}"
            if row["name"] == "others":
                named = {one["name"] for one in own}
                is_comm = {name for name, one in ours.items() if one["kind"] != "compute" and "multimem" not in name}
                rest = sum(one["total_ns"] for name, one in ours.items() if name not in named | is_comm)
                yield Value(of, "sum (us)", float(row["sum (us)"]), us(rest))
                continue
            one = ours[row["name"]]
            times = [float(work.duration) for work in raw.work if work.name == row["name"]]
            host = sum(event.duration for event in raw.host if event.name == row["name"])
            total = Value(of, "sum (us)", float(row["sum (us)"]), us(one["total_ns"]))
            fault = "operator of the same name"
            yield (
                total
                if total.is_equal
                else Value(of, "sum (us)", total.theirs, total.ours, 1.0, fault, sum(times), sum(times) + host)
            )
            right = {"max (us)": max(times), "min (us)": min(times), "mean (us)": mean(times)}
            for column, exact in right.items():
                value = us(one[f"{column[:-5]}_ns"])
                same = Value(of, column, float(row[column]), value, 0.001)
                yield same if same.is_equal else Value(
                    of, column, same.theirs, value, 0.001 if not host else 1.0,
                    "totals as single values" if row["kernel_type"] not in single else "", exact, sum(times) + host,
                )  # fmt: skip


def ranges(given: Given) -> Iterator[Value]:
    """Marked ranges by rank and name, on the host or on the device."""
    place = "device" if given.file.name.startswith("gpu") else "host"
    found = given.run.analyse("ranges").filter(pl.col("place") == place)
    ours = {(row["rank"], row["name"]): row for row in found.iter_rows(named=True)}
    rows = given.rows()
    yield Value("all", "rows", len(rows), len(ours))
    for row in rows:
        one = ours[int(row["rank"]), row["name"]]
        of = f"rank {row['rank']} {row['name']}"
        for column, name in (
            ("sum (us)", "total_ns"),
            ("max (us)", "max_ns"),
            ("min (us)", "min_ns"),
            ("mean (us)", "mean_ns"),
        ):
            yield Value(of, column, float(row[column]), us(one[name]), 0.001)
        if one["count"] == 1:
            yield Value(of, "stddev", float(row["stddev"]), us(one["std_ns"]), fault="no spread of one", wrong=0.0)
        else:
            yield Value(of, "stddev", float(row["stddev"]), us(one["std_ns"]), 0.001)


def operators(given: Given) -> Iterator[Value]:
    """Kernels that operators of ATen launch, without copies and fills, as HTA looks at them."""
    rank = int(given.file.stem.rpartition("_r")[2])
    found = given.run.analyse("operator_launches", shown=0).filter(
        pl.col("rank") == rank, pl.col("operator").str.starts_with("aten::")
    )
    ours = {(row["operator"], row["sequence"]): row for row in found.iter_rows(named=True)}
    rows = {(row["aten_op_name"], _runs(row["kernel_sequence"])): row for row in given.rows()}
    yield Value("all", "rows", len(rows), len(given.rows()))
    right, wrong = (_by_operator(given.raw[rank], innermost=innermost) for innermost in (True, False))
    nothing = dict.fromkeys(OF_OPERATORS.values())
    for key in sorted({*rows, *ours}):
        theirs, one = rows.get(key, {}), ours.get(key, nothing)
        for column, name in OF_OPERATORS.items():
            value = one[name] if name == "count" else us(one[name])
            cell = number(theirs.get(column, ""))
            excused = right.get(key, {}).get(column), wrong.get(key, {}).get(column)
            same = Value(f"{key[0]} {key[1][:80]}", column, cell, value, 0.001)
            fault = "operators that begin together"
            yield same if same.is_equal else Value(same.of, column, cell, value, 0.001, fault, *excused)


OF_OPERATORS = {
    "occurrence_count": "count",
    "avg_aten_op_launch_delay": "to_launch_ns",
    "avg_runtime_delay": "to_start_ns",
}


def _by_operator(raw: RawRank, *, innermost: bool) -> dict[tuple[str, str], dict[str, float]]:
    """The columns of `OF_OPERATORS` by operator and sequence."""
    found = launching_operators(raw, innermost=innermost)
    return {
        (name, _runs(" -> ".join(names))): dict(
            zip(OF_OPERATORS, (len(calls), *(mean(some) for some in zip(*calls, strict=True))), strict=True)
        )
        for (name, names), calls in found.items()
    }


def _runs(sequence: str) -> str:
    """A sequence with repeated kernels counted, as ours."""
    found: list[list[str]] = []
    for name in sequence.split(" -> "):
        if found and found[-1][0] == name:
            found[-1].append(name)
        else:
            found.append([name])
    return " -> ".join(run[0] if len(run) == 1 else f"{run[0]} (x{len(run)})" for run in found)


def sequences(given: Given) -> Iterator[Value]:
    """Sequences of at least three kernels under `aten::linear`."""
    found = given.run.select(ranks=0).analyse("kernel_sequences", operator="aten::linear", shortest=3, shown=0)
    ours = {row["sequence"]: row for row in found.iter_rows(named=True)}
    rows = given.rows() if given.file.read_text().strip() else []
    for row in rows:
        operator, *names = row["pattern"].split("|")
        one = ours.pop(_runs(" -> ".join(names)))
        yield Value(operator, "count", float(row["count"]), one["count"])
        yield Value(operator, "GPU kernel duration (us)", float(row["GPU kernel duration (us)"]), us(one["kernel_ns"]))
        yield Value(operator, "CPU op duration (us)", float(row["CPU op duration (us)"]), us(one["host_ns"]))
    for sequence, one in ours.items():
        yield Value(sequence[:80], "count", None, one["count"])
