"""Finding the work of a job that a user names: by rank, host, group, stage, step, kind, operator, link, size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.intervals import END, lengths, starting_in, union
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.methods.memberships import STAGE, memberships
from stepscope.analysis.methods.names import unnumbered
from stepscope.analysis.methods.scenario import PLACES, WHERE, Change, sizes_of
from stepscope.analysis.methods.unknown_names import few, unknown
from stepscope.analysis.methods.work_index import WorkIndex
from stepscope.errors import StepscopeError
from stepscope.present import size
from stepscope.selection import describe_numbers, parse_selection
from stepscope.tables import GROUPS, LINKS, OPERATORS, TRANSPORTS

_CALL = list(CALL)

_NUMBERS = re.compile(r"\d{1,6}(\s*[-,]\s*\d{1,6})*")


@dataclass(frozen=True)
class NamedWork:
    """The work of a job by all that it can be named by.

    Args:
        graph: The job.
        index: What is looked up in it.
        ranks: Table `ranks`.
        groups, operators, links, transports: The tables of these names, if there are any.
        layout: The answer `parallel_layout`.
    """

    graph: JobGraph
    index: WorkIndex
    ranks: pl.DataFrame
    groups: pl.LazyFrame | None
    operators: pl.LazyFrame | None
    links: pl.LazyFrame | None
    transports: pl.LazyFrame | None
    layout: pl.DataFrame | None = None

    def shares(self, change: Change) -> pl.Series:
        """Which share of each node a change is about (0 to 1).

        Raises:
            StepscopeError: If there is no such work; the text lists what there is.
        """
        meant = self.meant(change)
        found: pl.Series = meant.cast(pl.Float64)
        if "op" in change.where:
            found *= self._named(change.where["op"], change.text)
        if not (found > 0).any():
            raise StepscopeError(f"{change.text}: nothing in this job is all of that at once, though each alone is")
        return found

    def meant(self, change: Change, only: Iterable[str] = WHERE) -> pl.Series:
        """The nodes that the words of a change name, apart from `op`.

        Args:
            change: The change.
            only: Which of its words count.
        """
        found = pl.repeat(True, self.graph.nodes.height, dtype=pl.Boolean, eager=True)
        for name, value in change.where.items():
            if name != "op" and name in only:
                test: pl.Series = getattr(self, f"_of_{name}")(value, change.text)
                found &= test.fill_null(value=False)
        return found

    def elsewhere(self, change: Change) -> pl.Series | None:
        """The nodes that are not in the places which a change names; None if it names none."""
        return ~self.meant(change, PLACES) if any(name in change.where for name in PLACES) else None

    @property
    def calls(self) -> pl.DataFrame:
        """The nodes that are calls; see `WorkIndex`."""
        return self.index.calls

    def _of_calls(self, which: pl.Series) -> pl.Series:
        """The nodes of some calls: those of `calls` for which it is true."""
        none = pl.repeat(False, self.graph.nodes.height, dtype=pl.Boolean, eager=True)
        return none.scatter(self.calls["node"].filter(which), values=True)

    def known(self) -> dict[str, tuple[str, int]]:
        """By word of a change, what it can name, in words, and how many names those are."""
        nodes = self.graph.nodes
        found = {
            name: (describe_numbers(numbers), len(numbers))
            for name in ("rank", "step")
            if (numbers := nodes[name].drop_nulls().unique().sort().to_list())
        }
        stages = self._units.filter(pl.col("unit_kind") == STAGE)["unit"].unique(maintain_order=True).to_list()
        pairs = self._matched["ranks"].filter(self._matched["ranks"].list.len() == 2).unique().sort().to_list()
        sizes = self.calls["size_bytes"].drop_nulls().unique().sort(descending=True).to_list()
        listed = {
            "host": self._hosts["host"].unique().sort().to_list(),
            "group": self._group_words(),
            "stage": stages,
            "kind": self._kinds(),
            "op": self._operators(),
            "link": [f"{one}-{other}" for one, other in pairs],
            "transport": self._transports["transport"].unique().sort().to_list(),
            "size": [size(one) for one in sizes],
        }
        found |= {name: (few(words), len(words)) for name, words in listed.items() if words}
        if not self._matched.is_empty():
            members = self._matched["ranks"].explode().unique().sort().to_list()
            found.setdefault(
                "link", (f"any two of {describe_numbers(members)}", len(members) * (len(members) - 1) // 2)
            )
            found["nic"] = (describe_numbers(members), len(members))
        return found

    def _of_rank(self, value: str, option: str) -> pl.Series:
        return self._numbered("rank", value, option)

    def _of_step(self, value: str, option: str) -> pl.Series:
        return self._numbered("step", value, option)

    def _numbered(self, name: str, value: str, option: str) -> pl.Series:
        chosen = parse_selection(value, f"{option}: {name}")
        numbers = self.graph.nodes[name]
        if chosen is None:
            return numbers.is_not_null()
        found = self.graph.nodes.select(chosen.expression(name).alias(name)).to_series()
        if not found.any():
            there = describe_numbers(numbers.drop_nulls().unique().sort().to_list())
            if name == "rank" and not self.ranks.filter(chosen.expression("rank")).is_empty():
                raise StepscopeError(
                    f"{option}: rank {value} is left out of the replay, as most of its calls match no others', or no "
                    f"work lies in its steps; its recording may be cut off. Ranks {there} are replayed"
                )
            raise StepscopeError(f"{option}: there is no {name} {value}. There are {name}s {there}")
        return found

    def _of_kind(self, value: str, option: str) -> pl.Series:
        kinds = self.graph.nodes["kind"]
        if not (found := kinds == value).any():
            raise unknown("kind", value, self._kinds(), option)
        return found

    def _kinds(self) -> list[str]:
        kinds: list[str] = self.graph.nodes["kind"].drop_nulls().unique().cast(pl.String).sort().to_list()
        return kinds

    def _of_host(self, value: str, option: str) -> pl.Series:
        return self._by_rank(self._ranks_of_host(value, option))

    def _ranks_of_host(self, value: str, option: str) -> list[int]:
        hosts = self._hosts
        if value not in set(hosts["host"]):
            raise unknown("host", value, hosts["host"].unique().sort().to_list(), option)
        return self.ranks_of_host(value)

    def ranks_of_host(self, host: str) -> list[int]:
        """The ranks on a host."""
        ranks: list[int] = self._hosts.filter(pl.col("host") == host)["rank"].to_list()
        return ranks

    @cached_property
    def _hosts(self) -> pl.DataFrame:
        return self.ranks.select("rank", "host").drop_nulls().unique("rank", keep="first").sort("rank")

    def _by_rank(self, ranks: Sequence[int]) -> pl.Series:
        return self.graph.nodes["rank"].is_in(ranks)

    @cached_property
    def _units(self) -> pl.DataFrame:
        listed = None if self.groups is None else self.groups.select("name", "members").collect()
        return memberships(self.ranks, listed, self.layout)

    def _of_stage(self, value: str, option: str) -> pl.Series:
        stages = self._units.filter(pl.col("unit_kind") == STAGE)
        ranks = stages.filter(pl.col("unit") == value)["rank"].to_list()
        if not ranks:
            raise unknown("stage", value, stages["unit"].unique(maintain_order=True).to_list(), option)
        return self._by_rank(ranks)

    @cached_property
    def _members(self) -> pl.DataFrame:
        """What groups are called, and who belongs to them: `word`, `group` (its key; null if unknown), `rank`."""
        listed = GROUPS.or_empty(self.groups).select("rank", "group", "name").collect()
        named = [listed.select("group", "rank", word=name) for name in ("group", "name")]
        units = self._units.filter(pl.col("unit_kind").str.ends_with("group"))
        by_ranks = units.select("rank", group=pl.lit(None, pl.String), word="unit")
        called = self.calls.select("group", "rank", word="group")
        every = pl.concat([one.select("word", "group", "rank") for one in (*named, called, by_ranks)])
        return every.drop_nulls(["word", "rank"]).unique().sort("word", "group", "rank", nulls_last=True)

    def _of_group(self, value: str, option: str) -> pl.Series:
        """The own work of its members, and its calls."""
        words = [word for word in self._members["word"].unique().sort() if _same(word) == _same(value)]
        rows = self._members.filter(pl.col("word").is_in(words))
        if rows.is_empty():
            raise unknown("group", value, self._group_words(), option)
        ranks = rows["rank"].unique().to_list()
        keys = rows["group"].drop_nulls().unique().to_list()
        own_work = self.index.is_own & self._by_rank(ranks)
        # Of a group that is known by its ranks, the calls in which just these take part.
        text = self._call_ranks.cast(pl.List(pl.String)).list.join(",")
        own = self.calls["group"].is_in(keys) if keys else text == ",".join(map(str, sorted(ranks)))
        return own_work | self._of_calls(own)

    def _group_words(self) -> list[str]:
        """Names of the groups, keys only of those without a name."""
        named = GROUPS.or_empty(self.groups).select("group", "name").unique().collect()
        keys = set(named.drop_nulls("name")["group"])
        words = [word for word in self._members["word"].unique().sort() if word not in keys]
        return list(dict.fromkeys(_same(word) for word in words))

    @cached_property
    def _matched(self) -> pl.DataFrame:
        """The matched calls with all their members."""
        rows = self.calls.filter(pl.col("members") > 1)
        hosts = rows.join(self._hosts, on="rank", how="left", maintain_order="left")
        return hosts.group_by(_CALL).agg(
            ranks=pl.col("rank").unique().sort(), hosts=pl.col("host").drop_nulls().unique().sort()
        )

    @cached_property
    def _by_call(self) -> pl.DataFrame:
        return self.calls.select(_CALL).join(self._matched, on=_CALL, how="left", maintain_order="left")

    @property
    def _call_ranks(self) -> pl.Series:
        return self._by_call["ranks"]

    def _of_link(self, value: str, option: str) -> pl.Series:
        column, one, other = self.ends(value, option)
        found = self._by_call.select(pl.col(column).list.contains(one) & pl.col(column).list.contains(other))
        if not (link := found.to_series()).any():
            pairs = self._matched[column].filter(self._matched[column].list.len() == 2).unique().sort()
            known = [f"{a}-{b}" for a, b in pairs.to_list()]
            calls = f"There are {few(known)}" if known else "Calls of larger groups link all their members"
            raise StepscopeError(f"{option}: no call links {one} and {other}. {calls}")
        return self._of_calls(link)

    def ends(self, value: str, option: str) -> tuple[str, int | str, int | str]:
        """The two ends of a link: the column (`ranks` or `hosts`) and their names in it.

        Raises:
            StepscopeError: If they are not two ranks or hosts of the job.
        """
        ranks = {str(rank): rank for rank in self.graph.nodes["rank"].drop_nulls().unique().sort()}
        hosts = {host: host for host in self._hosts["host"].unique().sort()}
        for column, known in (("ranks", ranks), ("hosts", hosts)):
            for place, sign in enumerate(value):
                one, other = value[:place].strip(), value[place + 1 :].strip()
                if sign in "-," and one in known and other in known and one != other:
                    return column, known[one], known[other]
        there = f"ranks {describe_numbers(ranks.values())}"
        there += f", hosts {few(list(hosts))}" if len(hosts) > 1 else ""
        raise StepscopeError(f"{option}: give two ranks or hosts, e.g. link=0-1. There are {there}")

    def nic_ranks(self, value: str, option: str) -> list[int]:
        """The ranks that a network interface is named by."""
        if value in set(self._hosts["host"]):
            return self._ranks_of_host(value, option)
        self._numbered("rank", value, option)
        chosen = parse_selection(value, option)
        ranks = self.graph.nodes["rank"].drop_nulls().unique().sort()
        return [rank for rank in ranks if chosen is None or rank in chosen]

    def _of_nic(self, value: str, option: str) -> pl.Series:
        among = self._by_call.select(
            mine=pl.col("ranks").list.set_intersection(self.nic_ranks(value, option)).list.len() > 0,
            hosts=pl.col("hosts").list.len(),
        )
        several = self._hosts["host"].n_unique() > 1
        found = among.select(pl.col("mine") & ((pl.col("hosts") > 1) if several else pl.lit(value=True))).to_series()
        if not found.any():
            raise StepscopeError(f"{option}: it has no calls with other {'hosts' if several else 'ranks'}")
        return self._of_calls(found)

    def _of_transport(self, value: str, option: str) -> pl.Series:
        used = self._transports
        wanted = used.filter(pl.col("transport").str.to_lowercase() == value.lower())
        if wanted.is_empty():
            raise unknown("transport", value, used["transport"].unique().sort().to_list(), option)
        found = [
            self.calls.join(wanted.drop_nulls(keys), on=keys, how="semi")["node"]
            for keys in (["rank", "step", "group", "name"], ["step", "group", "operation"])
        ]
        return self._of_calls(self.calls["node"].is_in(pl.concat(found).implode()))

    @cached_property
    def _transports(self) -> pl.DataFrame:
        """Which transports calls use: `rank`, `step`, `group`, `name` (null: calls of this `operation`)."""
        columns = ["rank", "step", "group", "operation", "name", "transport"]
        links = LINKS.or_empty(self.links).filter(pl.col("source") != pl.col("destination")).select(columns)
        moved = TRANSPORTS.or_empty(self.transports).with_columns(operation=pl.lit(None, pl.String)).select(columns)
        every = pl.concat([links, moved], how="vertical_relaxed").unique().drop_nulls("transport").collect()
        return every.filter(pl.col("transport") != "LOCAL")

    def _of_size(self, value: str, option: str) -> pl.Series:
        least, most = sizes_of(value, option)
        sizes = self.calls["size_bytes"]
        found = sizes.is_between(least, most)
        if not found.any():
            there = [size(one) for one in sizes.drop_nulls().unique().sort(descending=True)]
            known = f"There are calls of {few(there)}" if there else "No call's size was recorded"
            raise StepscopeError(f"{option}: no call has this size. {known}")
        return self._of_calls(found)

    def _named(self, name: str, option: str) -> pl.Series:
        """Which share of each node is work of this name."""
        nodes = self.graph.nodes
        own = _contains(self.index.names, name).gather(self.index.name).fill_null(value=False)
        # The operators that launched kernels, or that a CPU ran.
        is_named = pl.col("name").str.to_lowercase().str.contains(name.lower(), literal=True)
        ranges = OPERATORS.or_empty(self.operators).filter(is_named).select("rank", "start_ns", end_ns=END).collect()
        if ranges.is_empty():
            if not own.any():
                raise self._no_operator(name, option)
            whole_nodes: pl.Series = own.cast(pl.Float64)
            return whole_nodes
        ranges = union(ranges, by=["rank"])
        rows = nodes.select("rank", "kind", "lane", "launch_ns", "own_start_ns", length=self._lengths).with_row_index(
            "node"
        )
        # Nodes are on the common clock, operators on their rank's own one, as launches are.
        launched = starting_in(rows.filter(pl.col("launch_ns").is_not_null()), ranges, at="launch_ns")["node"]
        windows = rows.filter((pl.col("lane") == "host") & (pl.col("kind") == "computing")).select(
            "rank",
            start_ns="own_start_ns",
            end_ns=pl.col("own_start_ns") + pl.col("length"),
            window=pl.col("node").cast(pl.Int64),
        )
        inside = (
            lengths({"in": ranges}, windows.sort("rank", "start_ns"), by=["rank"])
            .filter("in")
            .group_by(node=pl.col("window").cast(pl.UInt32))
            .agg(inside=pl.col("duration_ns").sum())
        )
        parts = rows.select("node", "length").join(inside, on="node", how="left", maintain_order="left")
        ratio = pl.when(pl.col("length") > 0).then(pl.col("inside").fill_null(0) / pl.col("length")).otherwise(0.0)
        whole = own | rows["node"].is_in(launched.implode())
        found = parts.select(pl.when(whole).then(1.0).otherwise(ratio)).to_series()
        if not (found > 0).any():
            raise self._no_operator(name, option)
        return found

    @property
    def _lengths(self) -> pl.Series:
        """How long each node takes."""
        return self.graph.simulation.duration_ns

    def _no_operator(self, name: str, option: str) -> StepscopeError:
        return unknown("op", name, self._operators(), option, "no kernel, call or operator has this in its name")

    def _operators(self) -> list[str]:
        """Names of kernels and calls, or, if there are only calls, of operators: those that take longest first."""
        nodes = self.graph.nodes.select("kind", name=self.index.name, ns=self._lengths).drop_nulls("name")
        works = nodes.group_by("name", "kind").agg(pl.col("ns").sum())
        named = works.with_columns(name=self.index.names.gather(works["name"])).with_columns(unnumbered())
        timed = named.group_by("name", "kind").agg(pl.col("ns").sum()).sort("ns", "name", descending=[True, False])
        ran = OPERATORS.or_empty(self.operators).group_by("name").agg(pl.col("duration_ns").sum())
        if (timed["kind"] == "communication").all():
            ordered = ran.sort("duration_ns", "name", descending=[True, False]).collect()["name"]
            return [*ordered, *timed["name"]]
        known: list[str] = timed["name"].unique(maintain_order=True).to_list()
        return known


def _same(name: str) -> str:
    """The name of a group; ranks in one notation, as `0, 1` and `0-1` are the same."""
    try:
        return str(parse_selection(name, "ranks")) if _NUMBERS.fullmatch(name) else name
    except StepscopeError:
        return name


def _contains(names: pl.Series, part: str) -> pl.Series:
    found: pl.Series = names.str.to_lowercase().str.contains(part.lower(), literal=True)
    return found
