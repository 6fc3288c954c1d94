"""Figures for Prometheus and OTLP, and the dashboard that uses them."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from shown_jobs import MS, MadeManager, made_job, slow_rank

from stepscope.errors import StepscopeError
from stepscope.live.messages import Digest
from stepscope.live.show import figures
from stepscope.live.show.figures import FAMILIES, families, snapshot
from stepscope.live.show.view import view_of

pytest.importorskip("grpc")
prometheus_parser = pytest.importorskip("prometheus_client.parser")

from stepscope.live.control.security import Security  # noqa: E402
from stepscope.live.show import metrics, otlp  # noqa: E402

DASHBOARD = Path(__file__).parents[3] / "examples" / "grafana" / "stepscope-live.json"


def run(made: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(made(), 30))


def got(url: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scraped(
    manager: MadeManager, path: str = "/metrics", *, token: str | None = None, **headers: str
) -> tuple[int, str]:
    async def serve_and_scrape() -> tuple[int, str]:
        port, end = metrics.serve(manager, 0, security=Security(token))
        try:
            return await asyncio.to_thread(got, f"http://127.0.0.1:{port}{path}", **headers)
        finally:
            await asyncio.to_thread(end)

    answer: tuple[int, str] = run(serve_and_scrape)
    return answer


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted((k, v) for k, v in sample.labels.items() if k != "job"))): sample.value
        for family in prometheus_parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def manager() -> MadeManager:
    made = made_job(slow={2: 2.0}, steps=20)
    made.lag_ns = 250 * MS
    made.happen(slow_rank())
    return made


def test_a_scrape_has_figures_of_each_rank_and_of_the_job(manager: MadeManager) -> None:
    code, text = scraped(manager)
    found = samples(text)

    assert code == 200
    assert found["stepscope_rank_up", (("rank", "2"),)] == 1
    assert found["stepscope_steps_total", (("rank", "2"),)] == 20
    assert found["stepscope_step_seconds_sum", (("rank", "2"),)] == pytest.approx(2.0)
    assert found["stepscope_step_seconds_count", (("rank", "2"),)] == 20
    assert found["stepscope_forward_seconds_sum", (("rank", "2"),)] == pytest.approx(1.2)
    assert found["stepscope_recent_seconds", (("kind", "forward"), ("rank", "2"))] == pytest.approx(0.06)
    assert found["stepscope_slow_ratio", (("rank", "2"),)] == pytest.approx(65 / 35)
    assert found["stepscope_verdicts_open", (("cause", "slow_compute"),)] == 1
    assert found["stepscope_verdicts_open", (("cause", "hang"),)] == 0
    assert found["stepscope_blamed_ratio", (("cause", "slow_compute"), ("rank", "2"))] == 1.5
    assert found["stepscope_switch_on", (("kind", "communication"),)] == 0
    assert found["stepscope_switch_ranks", (("state", "applied"),)] == 4
    assert found["stepscope_detector_lag_seconds", ()] == 0.25
    assert found["stepscope_ranks", (("state", "alive"),)] == 4
    assert 'job="job-7"' in text


def test_a_rank_that_is_gone_has_no_series_but_that_it_is_not_up(manager: MadeManager) -> None:
    manager.ranks[3].alive = False

    of_rank = {name for name, labels in samples(scraped(manager)[1]) if ("rank", "3") in labels}

    assert of_rank == {"stepscope_rank_up"}


def test_communication_has_figures_only_while_it_is_recorded(manager: MadeManager) -> None:
    assert "stepscope_communication_seconds" not in scraped(manager)[1]

    manager.happen(Digest(rank=1, step=21, end_at_ns=1, step_ns=MS, communication_ns=5 * MS))

    assert samples(scraped(manager)[1])["stepscope_communication_seconds_sum", (("rank", "1"),)] == 0.005


def test_names_follow_the_conventions(manager: MadeManager) -> None:
    for name, described in FAMILIES.items():
        assert re.fullmatch(r"stepscope_[a-z_]+", name)
        assert name.endswith("_total") == (described.kind == "counter")
        assert described.help.endswith(".")
        assert name.endswith("_seconds") == (described.unit == "s")


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_RANKS", 10)
    monkeypatch.setattr(figures, "MOST_BLAMED", 3)
    manager = made_job(ranks=50, steps=1)
    manager.happen(slow_rank(ranks=list(range(50))))

    made = {family.described.name: family.samples for family in families(snapshot(view_of(manager)))}

    assert len(made["stepscope_rank_up"]) == 10
    assert len(made["stepscope_blamed_ratio"]) == 3


def test_hostile_names_of_hosts_are_labels_and_nothing_else() -> None:
    manager = MadeManager(job='j"\n}')
    manager.join(0, host='x"} 1\nstepscope_rank_up{rank="9"} 7\n\x00')

    found = samples(scraped(manager)[1])

    assert found["stepscope_rank_up", (("rank", "0"),)] == 1
    assert ("stepscope_rank_up", (("rank", "9"),)) not in found


def test_open_metrics_is_served_to_those_who_ask(manager: MadeManager) -> None:
    _, text = scraped(manager, Accept="application/openmetrics-text; version=1.0.0")

    assert text.endswith("# EOF\n")


def test_nothing_but_metrics_is_served(manager: MadeManager) -> None:
    assert scraped(manager, "/etc/passwd")[0] == 404
    assert scraped(manager, "/")[0] == 404


def test_with_a_token_strangers_are_refused(manager: MadeManager) -> None:
    token = "t" * 20

    assert scraped(manager, token=token)[0] == 401
    assert scraped(manager, token=token, Authorization=f"Bearer {token}x")[0] == 401
    assert scraped(manager, token=token, Authorization=f"Bearer {token}")[0] == 200


def test_beyond_loopback_a_token_is_required(manager: MadeManager) -> None:
    async def serve() -> None:
        metrics.serve(manager, 0, host="0.0.0.0")

    with pytest.raises(StepscopeError, match="token"):
        run(serve)


def test_a_port_in_use_is_an_error_with_a_remedy(manager: MadeManager) -> None:
    async def twice() -> None:
        port, end = metrics.serve(manager, 0)
        try:
            metrics.serve(manager, port)
        finally:
            await asyncio.to_thread(end)

    with pytest.raises(StepscopeError, match="--metrics-port"):
        run(twice)


def test_a_scrape_waits_for_no_busy_event_loop(manager: MadeManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "TIMEOUT_S", 0.2)

    async def busy() -> tuple[int, str]:
        port, end = metrics.serve(manager, 0)
        answers: list[tuple[int, str]] = []
        asking = threading.Thread(target=lambda: answers.append(got(f"http://127.0.0.1:{port}/metrics")))
        asking.start()
        asking.join(10)  # the loop does nothing meanwhile
        await asyncio.to_thread(end)
        return answers[0]

    assert run(busy)[0] == 503


def test_the_dashboard_uses_only_names_that_exist() -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    expressions += [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    used = {name for text in expressions for name in re.findall(r"stepscope_\w+", text)}
    known = set(FAMILIES) | {f"{name}_{part}" for name in FAMILIES for part in ("sum", "count")}

    assert used
    assert used <= known
    assert {"stepscope_slow_ratio", "stepscope_verdicts_open", "stepscope_rank_up"} <= used


class Receiver:
    """An OpenTelemetry collector that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.code = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), gzip.decompress(body)))
                self.send_response(receiver.code)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self, path: str) -> list[bytes]:
        return [body for at, _, body in self.got if at == path]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    pytest.importorskip("opentelemetry.proto")
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


async def wait_until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.01)


def test_figures_reach_an_otlp_collector(
    manager: MadeManager, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=abc%20d,x=1")

    async def follow() -> None:
        end = otlp.follow(manager, receiver.url + "/", every_s=0.02)
        await wait_until(lambda: bool(receiver.got))
        await asyncio.to_thread(end)

    run(follow)
    path, headers, body = receiver.got[0]
    request = ExportMetricsServiceRequest.FromString(body)
    [of_resource] = request.resource_metrics
    made = {metric.name: metric for metric in of_resource.scope_metrics[0].metrics}
    resource = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    steps = {p.attributes[0].value.string_value: p for p in made["stepscope_step_seconds"].summary.data_points}

    assert path == "/v1/metrics"
    assert (headers["api-key"], headers["Content-Type"]) == ("abc d", "application/x-protobuf")
    assert resource == {"service.name": "stepscope", "stepscope.job": "job-7"}
    assert (steps["2"].count, steps["2"].sum) == (20, pytest.approx(2.0))
    assert made["stepscope_steps_total"].sum.is_monotonic
    assert made["stepscope_steps_total"].sum.aggregation_temporality == 2
    assert [p.as_double for p in made["stepscope_rank_up"].gauge.data_points] == [1, 1, 1, 1]
    assert set(made) == {family.described.name for family in families(snapshot(view_of(manager)))}


def test_verdicts_are_log_records(receiver: Receiver) -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    manager = made_job()

    async def follow() -> None:
        end = otlp.follow(manager, f"{receiver.url}/v1/metrics", every_s=60)
        manager.happen(slow_rank(), slow_rank(until_step=60, until_at_ns=5))
        await wait_until(lambda: len(receiver.got) == 2)
        await asyncio.to_thread(end)

    run(follow)
    logs = [ExportLogsServiceRequest.FromString(body) for body in receiver.bodies("/v1/logs")]
    records = [each.resource_logs[0].scope_logs[0].log_records[0] for each in logs]

    assert [record.severity_text for record in records] == ["WARN", "INFO"]
    assert records[0].body.string_value.startswith("Rank 2 computes slowly")
    assert records[0].attributes[0].value.string_value == "stepscope.verdict_opened"
    assert json.loads(records[0].attributes[1].value.string_value)["verdict"]["ranks"] == [2]


def test_a_collector_that_fails_is_reported_once_and_disturbs_nothing(
    manager: MadeManager, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.code = 400
    caplog.set_level(logging.WARNING)

    async def follow() -> None:
        end = otlp.follow(manager, receiver.url, every_s=0.02)
        await wait_until(lambda: len(receiver.got) > 4)
        await asyncio.to_thread(end)

    run(follow)

    assert caplog.text.count("The job goes on") == 1


def test_a_collector_that_is_away_disturbs_nothing(manager: MadeManager, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("opentelemetry.proto")

    async def follow() -> None:
        end = otlp.follow(manager, "http://127.0.0.1:1", every_s=0.01)
        for number in range(50):
            manager.happen(slow_rank(key=str(number)))
            await asyncio.sleep(0.002)
        await asyncio.to_thread(end)

    run(follow)

    assert 1 <= caplog.text.count("no answer") <= 2  # figures and verdicts
