"""The example for Kubernetes fits together: names, rules, and every command in it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kubernetes")
pytest.importorskip("yaml")

import typer.main
import yaml

from stepscope.cli.app import app
from stepscope.live.places import CLUSTER_BASE, CLUSTER_SWITCH_FILE, MANAGER_PORT
from stepscope.live.switches import DEFAULT, NONE, parse_guide
from stepscope.live.switching.config_map import Cluster, name_of, rule
from stepscope.live.switching.mounted import KEY

EXAMPLE = Path(__file__).parents[3] / "examples" / "kubernetes"


def objects() -> dict[str, Any]:
    """The objects of all files, by kind."""
    found = [each for file in EXAMPLE.glob("*.yaml") for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


def commands() -> list[str]:
    """Each `stepscope ...` in the example, with what follows it."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(EXAMPLE.iterdir())]
    found = [match for text in texts for match in re.findall(r"^ *(?:.*-- |exec )?(stepscope live .*)$", text, re.M)]
    assert len(found) == 7
    return found


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one_that_this_release_has(command: str) -> None:
    _, group, name, *words = shlex.split(command)
    live: Any = typer.main.get_command(app).commands[group]  # type: ignore[attr-defined]

    with live.commands[name].make_context(name, words) as context:
        assert context.params


def fits(value: Any, kind: str, place: str) -> None:
    """Whether a value has only fields that the API knows, of the right kind, and those that it needs."""
    from kubernetes import client

    if inner := re.fullmatch(r"[Ll]ist\[(.*)\]", kind):
        assert isinstance(value, list), place
        for number, each in enumerate(value):
            fits(each, inner[1], f"{place}[{number}]")
    elif inner := re.fullmatch(r"[Dd]ict[(\[]str, (.*)[)\]]", kind):
        assert isinstance(value, dict), place
        for key, each in value.items():
            fits(each, inner[1], f"{place}.{key}")
    elif hasattr(client, kind):
        model = getattr(client, kind)
        names = {name: attribute for attribute, name in model.attribute_map.items()}
        assert isinstance(value, dict), place
        assert value.keys() <= names.keys(), f"{place}: {value.keys() - names.keys()}"
        for name, each in value.items():
            fits(each, model.openapi_types[names[name]], f"{place}.{name}")
        given = {names[name]: each for name, each in value.items()}
        model(**given)  # raises for a field that is missing
    else:
        kinds = {"str": str, "int": int, "bool": bool, "object": object}
        assert isinstance(value, kinds[kind]), f"{place}: {value!r} is no {kind}"


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("ConfigMap", "V1ConfigMap"),
        ("ServiceAccount", "V1ServiceAccount"),
        ("Role", "V1Role"),
        ("RoleBinding", "V1RoleBinding"),
        ("Service", "V1Service"),
        ("Job", "V1Job"),
    ],
)
def test_objects_have_the_fields_of_the_api(kind: str, model: str) -> None:
    fits(objects()[kind], model, kind)


def test_a_field_that_the_api_does_not_know_would_be_found() -> None:
    job = objects()["Job"]
    job["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []

    with pytest.raises(AssertionError, match="volumeMount"):
        fits(job, "V1Job", "Job")


def test_the_config_map_is_the_one_that_the_manager_follows_and_the_role_allows() -> None:
    found = objects()
    config_map, role, job = found["ConfigMap"], found["Role"], found["Job"]
    (stepscope,) = job["spec"]["template"]["spec"]["initContainers"]

    followed = re.search(r"--kubernetes (\S+)", stepscope["args"][0])
    assert followed
    name = name_of(followed[1])
    assert config_map["metadata"]["name"] == name
    assert config_map["metadata"]["labels"] == {"reset": "true"}
    assert NONE.with_changes(parse_guide(config_map["data"][KEY])) == DEFAULT
    needed = re.findall(r"\{.*?\}", rule(Cluster(None, "default"), name, writes=True))
    assert [yaml.safe_load(one) for one in needed] == role["rules"][:2]
    assert found["RoleBinding"]["subjects"][0]["name"] == found["ServiceAccount"]["metadata"]["name"]
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]


def test_ports_volumes_and_names_fit_together() -> None:
    found = objects()
    job, service = found["Job"], found["Service"]
    pod = job["spec"]["template"]["spec"]
    (stepscope,), (training,) = pod["initContainers"], pod["containers"]

    assert service["spec"]["ports"][0]["port"] == stepscope["ports"][0]["containerPort"] == MANAGER_PORT
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    for container in (stepscope, training):
        assert f"{job['metadata']['name']}-0.{pod['subdomain']}" in container["args"][0]
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted <= {each["name"] for each in pod["volumes"]}
    places = {each["name"]: each["mountPath"] for each in training["volumeMounts"]}
    assert Path(places["switches"]) == CLUSTER_SWITCH_FILE.parent
    assert Path(places["records"]) == CLUSTER_BASE
    shared = [{each["name"]: each.get("value") for each in one["env"]} for one in (stepscope, training)]
    assert shared[0]["STEPSCOPE_LIVE_SOCKET"] == shared[1]["STEPSCOPE_LIVE_SOCKET"]
    assert Path(shared[0]["STEPSCOPE_LIVE_SOCKET"]).parent != Path(places["sockets"]), "others could write there"
    assert shared[0]["MINDX_TASK_ID"] == shared[1]["MINDX_TASK_ID"] == job["metadata"]["name"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "switches"]
    assert volume["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
