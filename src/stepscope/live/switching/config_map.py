"""The ConfigMap with the switches of a job, as MindCluster defines it: how it is found, read and written.

Calls block for as long as the API server takes, so they belong in a thread.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.live.switches import InvalidSwitch, Switches, kind_of
from stepscope.live.switching.mounted import KEY

PREFIX = "data-trace-"
LABEL = "reset"
"""MindCluster's device plugin copies only ConfigMaps with the label `reset: "true"` to the nodes. One without the
label is followed here all the same; one with another value is not, so that a ConfigMap can be set aside without being
deleted."""
CALL_S = 10.0
"""Longest time that a call may take, in seconds."""
WATCH_S = 60
"""After this time a watch is begun anew, in seconds, so that a dead connection is noticed."""
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NEEDED = "switching by a ConfigMap needs the Kubernetes client. Install it: pip install 'stepscope[kubernetes]'"
_JOB = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class KubernetesProblem(StepscopeError):
    """The API server cannot be used: what failed, and what to do."""


@dataclass(frozen=True)
class Cluster:
    """Where ConfigMaps are: a client of the API server, and the namespace of the job."""

    api: Any
    namespace: str


@dataclass(frozen=True)
class Seen:
    """A ConfigMap as it was at some time.

    Args:
        text: Its switches; None if there are none.
        version: Its `resourceVersion`; empty if it does not exist.
        label: The value of the label `reset`.
    """

    text: str | None = None
    version: str = ""
    label: str | None = None

    @property
    def is_aside(self) -> bool:
        """Whether its label says that it is not to be used."""
        return self.label not in (None, "true")

    @property
    def problem(self) -> str:
        """Why it has no effect; empty if it has one, as far as is known without its text."""
        if not self.version:
            return "there is no such ConfigMap"
        if self.is_aside:
            return f'its label {LABEL} is {self.label!r}, not "true", so it is set aside'
        return "" if self.text is not None else f"it has no key {KEY}"


def connect(namespace: str | None = None) -> Cluster:
    """The cluster that this process runs in, else the one of the user's `kubectl`.

    Args:
        namespace: Namespace of the job. Default: that of this pod, else that of the current context.

    Raises:
        KubernetesProblem: If there is none, or the client is not installed.
    """
    try:
        from kubernetes import client, config  # an extra, loaded only where it is used
    except ImportError as error:
        raise KubernetesProblem(f"{_NEEDED} ({error})") from error
    settings = client.Configuration()
    try:
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            config.load_incluster_config(settings)
            found = (_ACCOUNT / "namespace").read_text("utf-8").strip()
        else:
            config.load_kube_config(client_configuration=settings)
            context = config.list_kube_config_contexts()[1]
            found = str(context.get("context", {}).get("namespace") or "default")
    except (config.ConfigException, OSError) as error:
        raise KubernetesProblem(
            f"no access to a Kubernetes cluster ({error}). In a pod, set a serviceAccountName; elsewhere, check that "
            "`kubectl get configmaps` works"
        ) from error
    settings.retries = False
    return Cluster(client.CoreV1Api(client.ApiClient(settings)), namespace or found)


def name_of(job: str) -> str:
    """Name of the ConfigMap of a job.

    Raises:
        KubernetesProblem: If no object can be called so.
    """
    name = PREFIX + job
    if not _JOB.fullmatch(job) or len(name) > 253:
        raise KubernetesProblem(
            f"{job[:300]!r} cannot be the name of a job in Kubernetes: it has lower-case letters, digits, '-' and '.', "
            f"and at most {253 - len(PREFIX)} characters. Give the name of the job's object"
        )
    return name


def seen(config_map: Any | None) -> Seen:
    """What the client's object says."""
    if config_map is None:
        return Seen()
    labels, data = config_map.metadata.labels or {}, config_map.data or {}
    return Seen(data.get(KEY), str(config_map.metadata.resource_version or ""), labels.get(LABEL))


def listed(cluster: Cluster, name: str) -> tuple[Seen, str]:
    """The ConfigMap at present, and the version from which changes can be watched.

    Raises:
        ApiException: If the server refuses.
    """
    found = cluster.api.list_namespaced_config_map(cluster.namespace, **_selected(name), _request_timeout=CALL_S)
    return seen(next(iter(found.items), None)), str(found.metadata.resource_version)


def changes(cluster: Cluster, name: str, version: str, watch: Any) -> Iterator[Seen]:
    """Each change after a version, until the server ends the watch; `watch` knows the version reached.

    Args:
        watch: A `kubernetes.watch.Watch`.

    Raises:
        ApiException: If the server refuses; with status 410 if the version is too old.
    """
    stream = watch.stream(
        cluster.api.list_namespaced_config_map,
        cluster.namespace,
        **_selected(name),
        resource_version=version,
        allow_watch_bookmarks=True,
        timeout_seconds=WATCH_S,
        _request_timeout=(CALL_S, WATCH_S + CALL_S),
    )
    for event in stream:
        if event["type"] in ("ADDED", "MODIFIED"):
            yield seen(event["object"])
        elif event["type"] == "DELETED":
            yield Seen()


def write(cluster: Cluster, name: str, switches: Switches, known: Seen) -> Seen:
    """Create the ConfigMap, or set its five switches; other keys in it stay.

    Args:
        known: The ConfigMap as it was last acted upon. If it has changed since, nothing is written.

    Returns:
        The ConfigMap from now on, whoever wrote it.

    Raises:
        ApiException: If the server refuses; with status 409 if somebody else has written at the same time.
    """
    from kubernetes.client import ApiException

    try:
        present = seen(cluster.api.read_namespaced_config_map(name, cluster.namespace, _request_timeout=CALL_S))
    except ApiException as error:
        if error.status != 404:
            raise
        body = _new(cluster, name, {KEY: _merged(None, switches)})
        return seen(cluster.api.create_namespaced_config_map(cluster.namespace, body, _request_timeout=CALL_S))
    if present.is_aside or present.text != known.text:
        return present
    metadata = {"resourceVersion": present.version, "labels": {LABEL: "true"}}
    body = {"metadata": metadata, "data": {KEY: _merged(present.text, switches)}}
    return seen(cluster.api.patch_namespaced_config_map(name, cluster.namespace, body, _request_timeout=CALL_S))


def rule(cluster: Cluster, name: str, writes: bool) -> str:
    """What a Role needs, in words."""
    verbs = "get, list, watch, patch" if writes else "get, list, watch"
    more = ', and {apiGroups: [""], resources: [configmaps], verbs: [create]}' if writes else ""
    return (
        f"Add to the Role of the manager's service account in namespace {cluster.namespace}: "
        f'{{apiGroups: [""], resources: [configmaps], resourceNames: [{name}], verbs: [{verbs}]}}{more}'
    )


def _selected(name: str) -> dict[str, str]:
    return {"field_selector": f"metadata.name={name}"}


def _merged(text: str | None, switches: Switches) -> str:
    """The text with the five switches set, and what else it holds."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = {}
    others = {key: value for key, value in found.items() if not _is_switch(key)} if isinstance(found, dict) else {}
    return json.dumps({**others, **switches.as_guide()}, separators=(",", ":"))


def _is_switch(key: str) -> bool:
    if key.strip().lower() == "all":
        return True
    try:
        kind_of(key)
    except InvalidSwitch:
        return False
    return True


def _new(cluster: Cluster, name: str, data: dict[str, str]) -> dict[str, Any]:
    """A ConfigMap that is deleted with the object of the job, if that is known."""
    owner = _owner(cluster)
    metadata: dict[str, Any] = {"name": name, "labels": {LABEL: "true"}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _owner(cluster: Cluster) -> dict[str, str] | None:
    """What owns this pod, e.g. the Job, else the pod itself; None outside of a pod, or if it may not be read."""
    from kubernetes.client import ApiException

    pod = os.environ.get("POD_NAME")
    if not pod:
        return None
    try:
        found = cluster.api.read_namespaced_pod(pod, cluster.namespace, _request_timeout=CALL_S)
    except ApiException:
        return None
    owners = found.metadata.owner_references or []
    owner = next((each for each in owners if each.controller), None)
    if owner is None:
        return {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": found.metadata.uid}
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
