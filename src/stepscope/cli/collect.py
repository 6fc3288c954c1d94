"""`stepscope collect`: the profiles of all hosts of a job, copied into one directory."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.collecting import CollectBar
from stepscope.cli.formatted import chosen_form
from stepscope.cli.notes import note
from stepscope.cli.options import AsJson, Debug, FormatOption, worded
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.cluster.collecting import Collected, Outcome
    from stepscope.cluster.hosts import Host
    from stepscope.cluster.listing import Notes

EXIT_PARTIAL = 3
"""Some files arrived and others did not."""
_NAMED = 5


def _given(*names: str, text: str, metavar: str) -> Any:
    return typer.Option(*names, help=text, metavar=metavar, show_default=False)


def _number(name: str, text: str, metavar: str, least: float) -> Any:
    return typer.Option(name, help=text, metavar=metavar, min=least)


def collect(
    hosts: Annotated[
        Path, _given("--hosts", text="Hosts: YAML, TOML or JSON, or a rank table (hccl.json).", metavar="FILE")
    ],
    output: Annotated[Path, _given("--output", "-o", text="New directory to collect into.", metavar="DIR")],
    source: Annotated[
        list[str] | None,
        _given("--source", text="Directories on each host, e.g. '/data/run1/device*' (repeatable).", metavar="PATTERN"),
    ] = None,
    jobs: Annotated[int, _number("--jobs", "Hosts to copy from at a time.", "N", 1)] = 8,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a directory that an earlier call has left.")
    ] = False,
    summaries: Annotated[
        bool,
        typer.Option("--summaries", help="Read the recordings on the hosts, and copy only what was read (`pack`)."),
    ] = False,
    layout: Annotated[
        str | None,
        worded(
            ("guide", "flat"),
            "--layout",
            help="cluster_profiler/ID/profiler, or a directory per host. Default: by what is found.",
            show_default=False,
        ),
    ] = None,
    rank_table: Annotated[
        Path | None, _given("--rank-table", text="Rank table of the job (hccl.json).", metavar="FILE")
    ] = None,
    user: Annotated[
        str | None, _given("--user", text="User to log in as, if the hosts file states none.", metavar="NAME")
    ] = None,
    key: Annotated[
        list[Path] | None,
        _given(
            "--key",
            "-i",
            text="Private key, if the hosts file states none. Default: those of ssh and its agent.",
            metavar="FILE",
        ),
    ] = None,
    jump: Annotated[
        str | None,
        _given("--jump", text="Host to connect through, if the hosts file states none.", metavar="USER@HOST:PORT"),
    ] = None,
    known_hosts: Annotated[
        Path | None,
        _given(
            "--known-hosts", text="Keys of hosts. Default: ~/.ssh/known_hosts. They are always checked.", metavar="FILE"
        ),
    ] = None,
    accounts: Annotated[
        Path | None,
        _given("--accounts", text="JSON file with users and passwords that only you can read.", metavar="FILE"),
    ] = None,
    ask_password: Annotated[bool, typer.Option("--ask-password", help="Ask for one password for all hosts.")] = False,
    max_files: Annotated[int, _number("--max-files", "Files to take from a host at most.", "N", 1)] = 200_000,
    max_gb: Annotated[float, _number("--max-gb", "GB to take from a host at most.", "GB", 0)] = 200.0,
    keep_gb: Annotated[float, _number("--keep-gb", "GB of the disk to keep free.", "GB", 0)] = 1.0,
    form: FormatOption = None,
    json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Copy the profiles of all hosts of a job into one directory, by SSH, from shares or by a command.

    Nothing is overwritten, and a host that fails costs only its own files. The exit code is 0 if all files arrived, 3
    if some did, 2 if none did.
    """
    from stepscope.cluster.collecting import Order
    from stepscope.cluster.collecting import collect as collected
    from stepscope.cluster.hosts import read_hosts, with_accounts
    from stepscope.cluster.listing import Bounds
    from stepscope.cluster.secrets import Account, read_accounts

    chosen = chosen_form(form, json=json, csv=False)
    if layout == "guide" and summaries:
        raise StepscopeError("--layout guide is for files of the profiler; --summaries has its own. Leave one out")
    listed = read_hosts(hosts)
    reached = [_with_defaults(host, user, key, jump) for host in listed.hosts]
    if accounts is not None:
        reached = list(with_accounts(reached, read_accounts(accounts)))
    if ask_password:
        password = _asked()
        reached = [
            host if host.account.password else replace(host, account=Account(host.user, password)) for host in reached
        ]
    order = Order(
        hosts=reached,
        sources=source or [],
        output=output.absolute(),
        jobs=jobs,
        resume=resume,
        layout=None if layout is None else "guide" if layout == "guide" else "flat",
        rank_table=rank_table or listed.rank_table,
        known_hosts=known_hosts,
        bounds=Bounds(max_files, int(max_gb * 1e9), int(keep_gb * 1e9)),
        summaries=summaries,
    )
    for library in ("asyncio", "asyncssh"):  # what becomes of a connection is told per host
        logging.getLogger(library).setLevel(logging.CRITICAL)
    if summaries and sys.stderr.isatty():
        note("the hosts read their recordings; what they read is copied when all are done")
    bar = CollectBar()
    with bar:
        done = collected(order, bar.watching)
    _show(done, chosen)
    code = _exit_code(done.outcomes)
    if code:
        raise typer.Exit(code)


def _with_defaults(host: Host, user: str | None, keys: list[Path] | None, jump: str | None) -> Host:
    """A host with what the call states where the hosts file states nothing."""
    own_keys = host.keys or tuple(map(str, keys or ()))
    return replace(host, user=host.user or user, keys=own_keys, jump=host.jump or jump)


def _asked() -> Any:
    """The password that the user types, unseen.

    Raises:
        StepscopeError: If there is no terminal to type it at.
    """
    import getpass

    from stepscope.cluster.secrets import Secret

    if not sys.stdin.isatty():
        raise StepscopeError("--ask-password: there is no terminal to ask at. Use keys, an agent or --accounts")
    return Secret(getpass.getpass("Password for the hosts: "))


def _exit_code(outcomes: list[Outcome]) -> int:
    from stepscope.cli import EXIT_FAILED, EXIT_OK

    if all(one.state == "complete" for one in outcomes):
        return EXIT_OK
    return EXIT_PARTIAL if any(one.copied.files for one in outcomes) else EXIT_FAILED


def _show(done: Collected, form: str) -> None:
    """Print what came of each host; standard error names those that failed by their addresses."""
    import polars as pl

    from stepscope import present
    from stepscope.cli.output import Output, print_document, print_frame
    from stepscope.pages.shown_table import undeclared

    schema = {
        **{"host": pl.Int32, "state": pl.String, "files": pl.Int64, "size_bytes": pl.Int64, "new_files": pl.Int64},
        **{"new_bytes": pl.Int64, "by_size": pl.Int64, "missing": pl.Int64, "skipped": pl.Int64, "reason": pl.String},
    }
    rows = [_row(one) for one in done.outcomes]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if form == "json":
        details = [
            {**row, "not_copied": _listed(one.copied.missing), "not_taken": _listed(one.skipped)}
            for row, one in zip(frame.to_dicts(), done.outcomes, strict=True)
        ]
        print_document({"output": str(done.output), "layout": done.layout, "hosts": details, "warnings": done.warnings})
    elif form == "csv":
        print_frame(frame, "csv")
    else:
        arrived = sum(one.copied.files for one in done.outcomes)
        size = present.size(sum(one.copied.bytes for one in done.outcomes))
        heading = f"{done.output}: {present.plural(arrived, 'file')}, {size}, layout {done.layout}"
        names = pl.Series("name", [one.name for one in done.outcomes], dtype=pl.String)
        Output().table(undeclared(frame.drop("reason", "new_bytes").insert_column(1, names), heading))
    for warning in done.warnings:
        note(f"warning: {warning}")
    for one in done.outcomes:
        _note(one)


def _row(one: Outcome) -> tuple[Any, ...]:
    copied = one.copied
    figures = (copied.files, copied.bytes, copied.fresh_files, copied.fresh_bytes, copied.by_size)
    return (one.host, one.state, *figures, copied.missing.count, one.skipped.count, one.reason)


def _listed(notes: Notes) -> list[dict[str, str]]:
    return [{"file": name, "reason": why} for name, why in notes.named]


def _note(one: Outcome) -> None:
    """What a user should know of a host."""
    from stepscope import present

    who = f"host {one.host} ({one.name})"
    missing = one.copied.missing
    if one.reason is not None and (one.copied.failure is not None or not missing.count):
        note(f"{who}: {one.reason}")
    for notes, what in ((missing, "not copied"), (one.skipped, "left out")):
        lines = [f"  {name}: {why}" for name, why in notes.named[:_NAMED]]
        more = [f"  and {notes.count - _NAMED} more"] if notes.count > _NAMED else []
        if lines:
            note("\n".join([f"{who}: {present.plural(notes.count, 'file')} {what}", *lines, *more]))
    if one.copied.by_size:
        note(
            f"{who}: {present.plural(one.copied.by_size, 'file')} checked by size only, since it computes no checksums "
            "(no sha256sum)"
        )
