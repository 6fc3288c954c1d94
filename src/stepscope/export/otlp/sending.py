"""Sending files of OTLP/JSON lines to a collector over HTTP, each line as a request."""

from __future__ import annotations

import gzip
import http.client
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from stepscope.errors import StepscopeError
from stepscope.http_target import Target, stated_headers

TRACES, METRICS = "/v1/traces", "/v1/metrics"
"""Paths of OTLP over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request."""

PAUSES_S = (1.0, 3.0, 9.0)
"""Before each repetition, chosen by us."""

_TIMEOUT_S = 30.0
_AGAIN = (429, 502, 503, 504)
"""Answers after which OTLP allows a request to be repeated."""

_ANSWER_BYTES = 1 << 16


class _Refused(Exception):
    """A request was not taken; `again` if it may be repeated."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


def targets(endpoint: str) -> tuple[Target, Target]:
    """Where traces and metrics go.

    Args:
        endpoint: Of the collector, e.g. `http://localhost:4318`, also with the path of one of both.

    Raises:
        StepscopeError: If it is no URL that can be used.
    """
    base = endpoint.rstrip("/").removesuffix(TRACES).removesuffix(METRICS)
    headers = {**stated_headers(), "Content-Encoding": "gzip", "Accept": "application/json"}
    traces, metrics = (Target(base + path, headers, plain=True) for path in (TRACES, METRICS))
    return traces, metrics


def send(target: Target, files: Sequence[Path], kept: Path) -> tuple[int, int]:
    """Send all lines of some files in order.

    Args:
        target: Where to.
        files: The files.
        kept: Where they stay, for the error.

    Returns:
        The number of requests, and of spans or samples that the collector did not take, as it says.

    Raises:
        StepscopeError: If one is not taken; later ones are not sent.
    """
    sent = rejected = 0
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                try:
                    rejected += _sent(target, gzip.compress(line, 1))
                except _Refused as reason:
                    raise StepscopeError(
                        f"{target.shown}: {reason}. {sent} requests were taken before; the files in {kept} are "
                        "complete, so they can be sent again"
                    ) from reason
                sent += 1
    return sent, rejected


def _sent(target: Target, body: bytes) -> int:
    for pause in PAUSES_S:
        try:
            return _post(target, body)
        except _Refused as reason:
            if not reason.again:
                raise
        time.sleep(pause)
    return _post(target, body)


def _post(target: Target, body: bytes) -> int:
    """Make a request; the number of items that were not taken of it."""
    try:
        answer = target.post(body, timeout_s=_TIMEOUT_S, content_bytes=_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise _Refused(f"no answer ({error or type(error).__name__})", again=True) from error
    if answer.is_redirect:
        raise _Refused("the answer is a redirect, which is not followed. Give the final URL", again=False)
    if not answer.is_good:
        raise _Refused(f"the answer is {answer.status} {answer.reason}", again=answer.status in _AGAIN)
    return _rejected(answer.content)


def _rejected(answer: bytes) -> int:
    """How many items a collector says that it did not take; 0 if it says nothing."""
    try:
        told = msgspec.json.decode(answer)
        partial = told.get("partialSuccess") or {}
        return sum(int(partial.get(key) or 0) for key in ("rejectedSpans", "rejectedDataPoints"))
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError):
        return 0
