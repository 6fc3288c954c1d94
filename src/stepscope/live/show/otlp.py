"""Figures and verdicts of a job for OpenTelemetry: sent over HTTP in OTLP's format."""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.http_target import Target, stated_headers
from stepscope.live.show.event_source import source_of
from stepscope.live.show.event_types import AnyEvent, VerdictChanged, VerdictOpened, VerdictOver, name_of, to_json
from stepscope.live.show.figures import Snapshot, families, snapshot
from stepscope.live.show.outbox import Outbox
from stepscope.live.show.view import view_of
from stepscope.live.show.watched import Watched
from stepscope.live.show.webhook import post

log = logging.getLogger("stepscope")

EVERY_S = 15.0
_WARN, _INFO = 13, 9
"""Severity numbers of OpenTelemetry."""
_SUFFIXES = ("/v1/metrics", "/v1/logs")


def follow(manager: Watched, url: str, *, every_s: float = EVERY_S) -> Callable[[], None]:
    """Send the figures of a manager, and its verdicts as log records, from now on; to be called in its event loop.

    The event loop takes a snapshot every `every_s`; all else is done in threads. A collector that fails is reported in
    the log once; figures that it missed are not repeated, verdicts are.

    Args:
        url: Of the collector, e.g. `http://localhost:4318`.

    Returns:
        A function that ends it.

    Raises:
        StepscopeError: If the URL cannot be used, or the package of OpenTelemetry is missing.
    """
    try:
        import opentelemetry.proto.collector.metrics.v1.metrics_service_pb2  # noqa: F401
    except ImportError as error:
        raise StepscopeError("OTLP needs OpenTelemetry. Install it: pip install 'stepscope[otlp]'") from error
    base = url.rstrip("/")
    for suffix in _SUFFIXES:
        base = base.removesuffix(suffix)
    headers = {**stated_headers(), "Content-Encoding": "gzip"}
    metrics, logs = (Target(base + suffix, headers, "application/x-protobuf", plain=True) for suffix in _SUFFIXES)
    if metrics.goes_plain:
        log.warning(
            "%s: figures and verdicts travel unencrypted; use https in networks that others share", metrics.shown
        )
    started_ns = time.time_ns()
    figures: Outbox[Snapshot] = Outbox(
        f"OTLP {metrics.shown}",
        lambda taken: post(metrics, gzip.compress(metrics_request(taken, started_ns), 1)),
        attempts=1,
        most=4,
    )
    verdicts: Outbox[AnyEvent] = Outbox(
        f"OTLP {logs.shown}", lambda event: post(logs, gzip.compress(logs_request(event), 1))
    )

    def take(event: AnyEvent) -> None:
        if isinstance(event, (VerdictOpened, VerdictChanged, VerdictOver)):
            verdicts.put(event)

    async def send_figures() -> None:
        view = view_of(manager)
        while True:
            await asyncio.sleep(every_s)
            figures.put(snapshot(view))

    source_of(manager).add(take)
    task = asyncio.get_running_loop().create_task(send_figures(), name="stepscope-otlp")

    def close() -> None:
        task.cancel()
        source_of(manager).remove(take)
        figures.close()
        verdicts.close()

    return close


def metrics_request(taken: Snapshot, started_ns: int) -> bytes:
    """An `ExportMetricsServiceRequest` with all figures."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
    from opentelemetry.proto.metrics.v1 import metrics_pb2

    request = metrics_service_pb2.ExportMetricsServiceRequest()
    of_resource = request.resource_metrics.add()
    _describe(of_resource.resource, taken.status.job)
    scope = of_resource.scope_metrics.add()
    scope.scope.name = "stepscope"
    at_ns = taken.status.at_ns
    for family in families(taken):
        described = family.described
        metric = scope.metrics.add(name=described.name, description=described.help, unit=described.unit)
        for sample in family.samples:
            if described.kind == "gauge":
                point = metric.gauge.data_points.add(time_unix_nano=at_ns, as_double=sample.value)
            elif described.kind == "counter":
                metric.sum.is_monotonic = True
                metric.sum.aggregation_temporality = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
                point = metric.sum.data_points.add(
                    time_unix_nano=at_ns, start_time_unix_nano=started_ns, as_double=sample.value
                )
            else:
                point = metric.summary.data_points.add(
                    time_unix_nano=at_ns, start_time_unix_nano=started_ns, count=sample.number, sum=sample.value
                )
            _label(point.attributes, dict(zip(described.labels, sample.labels, strict=True)))
    return bytes(request.SerializeToString())


def logs_request(event: AnyEvent) -> bytes:
    """An `ExportLogsServiceRequest` with one verdict: its headline as the body, the whole event as an attribute."""
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2

    request = logs_service_pb2.ExportLogsServiceRequest()
    of_resource = request.resource_logs.add()
    _describe(of_resource.resource, event.job)
    scope = of_resource.scope_logs.add()
    scope.scope.name = "stepscope"
    over = isinstance(event, VerdictOver)
    record = scope.log_records.add(
        time_unix_nano=event.at_ns,
        observed_time_unix_nano=event.at_ns,
        severity_number=_INFO if over else _WARN,
        severity_text="INFO" if over else "WARN",
    )
    headline = getattr(event, "headline", "")
    record.body.string_value = f"{headline} (over)" if over else headline
    _label(record.attributes, {"event.name": f"stepscope.{name_of(event)}", "stepscope.event": to_json(event).decode()})
    return bytes(request.SerializeToString())


def _describe(resource: Any, job: str) -> None:
    _label(resource.attributes, {"service.name": "stepscope", "stepscope.job": job})


def _label(attributes: Any, labels: Mapping[str, str]) -> None:
    for name, value in labels.items():
        attributes.add(key=name).value.string_value = value
