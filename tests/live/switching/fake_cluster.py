"""A small API server for ConfigMaps and pods: lists, watches and writes as Kubernetes does, on loopback."""

from __future__ import annotations

import copy
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

from stepscope.live.switching.config_map import Cluster

KEY = "profilingSwitch"


class FakeCluster:
    """Objects, their versions, and what has happened to them."""

    def __init__(self) -> None:
        self.maps: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.version = 100
        self.oldest = 0
        """Watches from an older version are refused with 410."""
        self.denied: set[str] = set()
        """Verbs that are refused with 403."""
        self.broken = False
        """Whether each request is answered with 500."""
        self.requests: list[str] = []
        self.answers_after_s = 0.0
        """Time between a patch and its answer; watches see it before."""
        self.before_patch: Any = None
        """Called once before the next patch, e.g. to edit at the same time."""
        self._events: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._cut = 0  # watches that began before this are ended
        self._watches = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def cluster(self) -> Cluster:
        """A connection with the real client."""
        from kubernetes import client

        settings = client.Configuration(host=f"http://127.0.0.1:{self._server.server_address[1]}")
        settings.retries = False
        return Cluster(client.CoreV1Api(client.ApiClient(settings)), "default")

    def close(self) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()

    def put(self, name: str, data: dict[str, str] | None, labels: dict[str, str] | None = None) -> None:
        """Create or replace a ConfigMap, as `kubectl apply` does."""
        labels = {"reset": "true"} if labels is None else labels
        self.store(name, {"metadata": {"name": name, "namespace": "default", "labels": labels}, "data": data})

    def store(self, name: str, found: dict[str, Any]) -> dict[str, Any]:
        with self._news:
            self.version += 1
            kind = "MODIFIED" if name in self.maps else "ADDED"
            found = copy.deepcopy(found)
            found["metadata"]["resourceVersion"] = str(self.version)
            self.maps[name] = found
            self._happened(kind, found)
            return copy.deepcopy(found)

    def delete(self, name: str) -> None:
        with self._news:
            self.version += 1
            found = self.maps.pop(name)
            found["metadata"]["resourceVersion"] = str(self.version)
            self._happened("DELETED", found)

    def text(self, name: str) -> str:
        with self._news:
            return str(self.maps[name]["data"][KEY])

    def expire(self) -> None:
        """Forget all events, and tell the present watches that their version is too old."""
        with self._news:
            self._events.append({"type": "ERROR", "object": status(410, "Expired", "too old resource version")})
            self.oldest = self.version + 1
            self.version += 1
            self._news.notify_all()

    def cut(self) -> None:
        """End all connections of watches without a word."""
        with self._news:
            self._cut = self._watches
            self._news.notify_all()

    def watching(self) -> int:
        """How many watches have begun so far."""
        with self._news:
            return self._watches

    def _happened(self, kind: str, found: dict[str, Any]) -> None:
        self._events.append({"type": kind, "object": {**copy.deepcopy(found), "kind": "ConfigMap", "apiVersion": "v1"}})
        self._news.notify_all()

    def events(self, version: int, seconds: float) -> Any:
        """Events after a version, until the time is over or the connection is cut; then None for the latter."""
        end = time.monotonic() + seconds
        with self._news:
            self._watches += 1
            number = self._watches
            place = 0
        while time.monotonic() < end:
            with self._news:
                if number <= self._cut:
                    yield None
                    return
                if place == len(self._events):
                    self._news.wait(0.05)
                fresh, place = self._events[place:], len(self._events)
            for event in fresh:
                if int(event["object"].get("metadata", {}).get("resourceVersion", version + 1)) > version:
                    yield event


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def _handler(cluster: FakeCluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def answer(self, code: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def refused(self, verb: str) -> bool:
            cluster.requests.append(verb)
            if cluster.broken:
                self.answer(500, status(500, "InternalError", "etcd is away"))
            elif verb in cluster.denied:
                self.answer(403, status(403, "Forbidden", f"cannot {verb} resource configmaps"))
            return cluster.broken or verb in cluster.denied

        def body(self) -> dict[str, Any]:
            return dict(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self) -> None:
            url = urlparse(self.path)
            asked = {key: values[0] for key, values in parse_qs(url.query).items()}
            resource, name = url.path.split("/")[-2:]
            if name == "configmaps":
                self.watch(asked) if "watch" in asked else self.list(asked)
                return
            if self.refused("get" if resource == "configmaps" else "get pods"):
                return
            found = (cluster.maps if resource == "configmaps" else cluster.pods).get(name)
            self.answer(200 if found else 404, found or status(404, "NotFound", f"{name} not found"))

        def list(self, asked: dict[str, str]) -> None:
            if self.refused("list"):
                return
            name = asked["fieldSelector"].removeprefix("metadata.name=")
            items = [found for each, found in cluster.maps.items() if each == name]
            self.answer(
                200, {"kind": "ConfigMapList", "metadata": {"resourceVersion": str(cluster.version)}, "items": items}
            )

        def watch(self, asked: dict[str, str]) -> None:
            if self.refused("watch"):
                return
            version = int(asked["resourceVersion"])
            if version < cluster.oldest:
                self.answer(410, status(410, "Expired", "too old resource version"))
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            name = asked["fieldSelector"].removeprefix("metadata.name=")
            try:
                for event in cluster.events(version, float(asked["timeoutSeconds"])):
                    if event is None:
                        self.close_connection = True
                        return
                    if event["object"].get("metadata", {}).get("name", name) != name:
                        continue
                    line = json.dumps(event).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True

        def do_POST(self) -> None:
            found = self.body()
            if self.refused("create"):
                return
            name = found["metadata"]["name"]
            if name in cluster.maps:
                self.answer(409, status(409, "AlreadyExists", name))
            else:
                self.answer(201, cluster.store(name, found))

        def do_PATCH(self) -> None:
            name, changes = self.path.rpartition("/")[2], self.body()
            if self.refused("patch"):
                return
            if cluster.before_patch is not None:
                act, cluster.before_patch = cluster.before_patch, None
                act()
            found = copy.deepcopy(cluster.maps.get(name))
            if found is None:
                self.answer(404, status(404, "NotFound", name))
            elif changes["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                self.answer(409, status(409, "Conflict", "the object has been modified"))
            else:
                for part, values in (("labels", changes["metadata"]["labels"]), ("data", changes["data"])):
                    place = found["metadata"] if part == "labels" else found
                    place[part] = {**(place.get(part) or {}), **values}
                stored = cluster.store(name, found)
                time.sleep(cluster.answers_after_s)
                self.answer(200, stored)

    return Handler
