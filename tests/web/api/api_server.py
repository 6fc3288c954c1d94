"""The REST interface over runs that are open already, in states that a test chooses, and a client of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from stepscope.run import Run, open_run
from stepscope.web.api import PREFIX, make_router
from stepscope.web.asking import Asking
from stepscope.web.catalogue import Catalogue
from stepscope.web.catalogue.entry import Entry
from stepscope.web.errors import NotReady, RunBroken, UnknownRun
from stepscope.web.kept_files import KeptFiles

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the library that the client is made of
    from starlette.testclient import TestClient

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"
ID = "example-0123abcd"


class OpenRuns:
    """Stands for the catalogue: runs that are open, and entries that a test changes."""

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self._runs = dict(runs)
        self.known = {
            name: Entry(
                name,
                run.name,
                run.path,
                run.path.parent,
                run.path.name,
                "ready",
                formats=("kineto",),
                ranks=len(run.ranks),
                steps=len(run.steps),
                start_ns=1_795_240_317_538_856_333,
                changed_ns=1_795_240_317_000_000_001,
                stamp="first",
            )
            for name, run in runs.items()
        }
        self.revision = 1
        self.opened = 0

    def entries(self) -> list[Entry]:
        return list(self.known.values())

    def entry(self, identity: str) -> Entry:
        if identity not in self.known:
            raise UnknownRun(f"there is no run {identity!r}. There are: {', '.join(self.known)}")
        return self.known[identity]

    def open(self, identity: str) -> Run:
        self.opened += 1
        entry = self.entry(identity)
        if entry.state in ("waiting", "reading"):
            raise NotReady(f"run {identity} is being read")
        if entry.state in ("failed", "gone"):
            raise RunBroken(entry.problem)
        return self._runs[identity]

    def is_open(self, identity: str, stamp: str) -> bool:
        return identity in self._runs and self.known[identity].stamp == stamp

    def check(self, identity: str) -> None:
        self.open(identity)

    def change(self, identity: str = ID, **facts: Any) -> None:
        self.known[identity] = replace(self.known[identity], **facts)
        self.revision += 1


class Api:
    """A client of the API.

    Args:
        runs: The catalogue, or what stands for it.
        client: Sends requests.
    """

    def __init__(self, runs: Any, client: TestClient, files: KeptFiles, asking: Asking) -> None:
        self.runs, self.client, self.files, self.asking = runs, client, files, asking

    @property
    def first(self) -> str:
        """Id of the first run."""
        return str(self.runs.entries()[0].id)

    def get(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Any:
        """The response to a request for an address below the prefix."""
        return self.client.get(PREFIX + path, params=query, headers=headers)

    def of_run(self, path: str, **query: Any) -> Any:
        """The JSON at an address below the example."""
        response = self.get(f"/runs/{ID}{path}", **query)
        assert response.status_code == 200, response.text
        return response.json()

    def problem(self, path: str, status: int, kind: str, **query: Any) -> Any:
        """The problem at an address, which must be of this status and kind."""
        return checked(self.get(path, **query), status, kind)

    def query(self, sql: str, **more: Any) -> Any:
        """The response to a query over the example."""
        return self.client.post(f"{PREFIX}/runs/{self.first}/query", json={"sql": sql, **more})


def checked(response: Any, status: int, kind: str) -> Any:
    """The problem that a response is."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["type"].endswith(f"/docs#{kind}"), found
    assert found["status"] == status
    assert found["title"] and found["detail"]
    assert "Traceback" not in response.text and str(EXAMPLE.parents[1]) not in found["detail"]
    return found


@contextmanager
def serving(runs: Mapping[str, Run] | None = None) -> Iterator[Api]:
    """The API over the example, or over other runs by id."""
    with _served(OpenRuns(runs or {ID: open_run(EXAMPLE, use_store=False)})) as api:
        yield api


@contextmanager
def catalogued(cache: Path, *roots: Path) -> Iterator[Api]:
    """The API over a catalogue of the example, or of other directories, when all runs there are ready.

    Args:
        cache: Where the store is.
        roots: The directories.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPSCOPE_CACHE", str(cache))
        catalogue = Catalogue(list(roots) or [EXAMPLE])
        catalogue.start()
        try:
            until = time.monotonic() + 60
            while not (entries := catalogue.entries()) or any(entry.state in UNSETTLED for entry in entries):
                assert time.monotonic() < until, entries
                time.sleep(0.05)
            with _served(catalogue) as api:
                yield api
        finally:
            catalogue.close()


UNSETTLED = ("waiting", "reading", "analysing")


@contextmanager
def _served(catalogue: Any) -> Iterator[Api]:
    asking, files = Asking(catalogue), KeptFiles(50)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(make_router(catalogue, asking, files))
    try:
        with TestClient(app, raise_server_exceptions=True) as client:
            yield Api(catalogue, client, files, asking)
    finally:
        asking.close()
        files.close()
