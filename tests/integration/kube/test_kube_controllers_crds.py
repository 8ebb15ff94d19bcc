"""The definitions of ``vcnb crds`` on a real API server, beside Volcano's own on another.

Both have to take and to refuse the same objects and to give them back alike; what the server refuses because of a schema,
the checks on this side refuse before it is sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kube import crds, manifests
from kube.apiserver import ApiServer, NoApiServer, find_assets
from vcnb.admission import review
from vcnb.clock import RealClock
from vcnb.errors import InvalidObject
from vcnb.kube.crds import CUSTOM_KINDS, custom_resource_definition, custom_resource_definitions
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, kind_of
from vcnb.resources.schema import check
from vcnb.store.kubernetes import open_store

GOLDEN = Path(__file__).parents[2] / "golden"
CASES: list[dict[str, Any]] = json.loads((GOLDEN / "admission.json").read_text())
IDS = [f"{number}-{case['name']}" for number, case in enumerate(CASES)]

needs_volcano = pytest.mark.skipif(not crds.volcano_crds(), reason="Volcano's definitions are not here")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that got its kinds from ``vcnb crds``."""
    try:
        assets = find_assets()
    except NoApiServer as error:
        pytest.skip(str(error))
    with ApiServer(tmp_path_factory.mktemp("ours"), assets=assets) as server:
        for definition in custom_resource_definitions():
            server.apply_crd(definition)
        yield server


class Answer:
    """What a server said to a manifest: the object as it would be stored, or why not."""

    def __init__(self, stored: Mapping[str, Any] | None, message: str = "") -> None:
        self.stored = stored
        self.message = message


def ask(server: ApiServer, obj: Mapping[str, Any]) -> Answer:
    """Offer an object, without having it stored."""
    kind = kind_of(obj)
    path = f"/apis/{kind.api_version}/{'namespaces/default/' if kind.namespaced else ''}{kind.plural}?dryRun=All"
    try:
        return Answer(server.call("POST", path, obj))
    except urllib.error.HTTPError as error:
        with error:
            answer = json.loads(error.read())
        if error.code not in {400, 422}:
            raise
        return Answer(None, answer["message"])


def content(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what each server sets for itself."""
    return {key: value for key, value in obj.items() if key != "metadata"}


def alike(here: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether both stored the same; the patches of a flow get no defaults here."""
    if there["kind"] != "JobFlow":
        return content(here) == content(there)
    return manifests.lost(content(here), content(there)) == []


def schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@needs_volcano
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_both_sets_give_one_answer(apiserver: ApiServer, ours: ApiServer, case: dict[str, Any]) -> None:
    theirs, here = ask(apiserver, case["object"]), ask(ours, case["object"])

    assert (theirs.stored is None) == (here.stored is None), theirs.message or here.message
    if theirs.stored is not None and here.stored is not None:
        assert alike(here.stored, theirs.stored)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_the_schema_refuses_is_refused_here_first(ours: ApiServer, case: dict[str, Any]) -> None:
    judged = review("CREATE", case["object"], None, World(), strict=True)

    if not judged.problems:
        answer = ask(ours, judged.object)
        assert answer.stored is not None, answer.message


class World:
    """Every queue is there and open, so that nothing is refused for another reason than the manifest's own."""

    def queue(self, name: str) -> Any:
        return {"kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}, "status": {"state": "Open"}}

    def queues(self) -> list[Any]:
        return [self.queue("default")]

    def namespace(self, name: str) -> Any:
        return None

    def template(self, namespace: str, name: str) -> Any:
        return None

    def priority_class(self, name: str) -> Any:
        return None


SMALL = (kinds.COMMAND, kinds.PODGROUP, kinds.QUEUE)
EVERY = 1 if os.environ.get("VCNB_KUBE_TRACES") == "all" else 20
"""Every so many of the possible mistakes are made."""


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_a_mistake_that_the_server_refuses_is_found_here_first(ours: ApiServer, kind: Kind) -> None:
    """One wrong value somewhere in an object that has every field: what the schema refuses, the structural check names."""
    whole_schema = schema(custom_resource_definition(kind, plain=True))
    whole = manifests.whole_object(kind, whole_schema, "whole")
    fields = {name: below for name, below in whole_schema["properties"].items() if name in whole}
    for name in ("apiVersion", "kind", "metadata"):
        fields.pop(name)
    made = list(manifests.mistakes({"properties": fields}, whole))[:: 1 if kind in SMALL else EVERY]

    refused = asyncio.run(refusals(ours, [manifests.changed(whole, *mistake) for mistake in made]))

    assert check(whole) == []
    overlooked = [
        mistake
        for mistake, was_refused in zip(made, refused, strict=True)
        if was_refused and not check(manifests.changed(whole, *mistake))
    ]
    assert overlooked == []
    assert sum(refused) > len(made) / 2 or kind == kinds.JOBFLOW


async def refusals(server: ApiServer, objects: list[Any]) -> list[bool]:
    """Whether the server would refuse each of them."""
    store = await open_store(kubeconfig=str(server.kubeconfig), clock=RealClock())
    some = asyncio.Semaphore(8)

    async def is_refused(obj: Any) -> bool:
        async with some:
            try:
                await store.create({**obj, "metadata": {"name": "whole", "namespace": "default"}}, dry_run=True)
            except InvalidObject:
                return True
            return False

    try:
        return await asyncio.gather(*map(is_refused, objects))
    finally:
        await store.close()


@needs_volcano
@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_no_field_of_volcanos_is_pruned(apiserver: ApiServer, ours: ApiServer, kind: Kind) -> None:
    (theirs,) = (found for found in crds.volcano_crds() if found["spec"]["names"]["kind"] == kind.kind)
    obj = manifests.whole_object(kind, schema(theirs), "whole")

    there, here = ask(apiserver, obj), ask(ours, obj)

    assert there.stored is not None, there.message
    assert here.stored is not None, here.message
    assert manifests.lost(obj, here.stored) == []
    assert alike(here.stored, there.stored)


@needs_volcano
@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_no_plain_field_of_ours_is_pruned_by_volcanos(apiserver: ApiServer, kind: Kind) -> None:
    obj = manifests.whole_object(kind, schema(custom_resource_definition(kind, plain=True)), "whole")

    there = ask(apiserver, obj)

    assert there.stored is not None, there.message
    assert manifests.lost(obj, there.stored) == []


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_no_field_of_ours_is_pruned(ours: ApiServer, kind: Kind) -> None:
    obj = manifests.whole_object(kind, schema(custom_resource_definition(kind)), "whole")

    here = ask(ours, obj)

    assert here.stored is not None, here.message
    assert manifests.lost(obj, here.stored) == []


@needs_volcano
def test_volcanos_definitions_prune_a_flow_that_decides(apiserver: ApiServer) -> None:
    """Why vcnb has to look before it sends an extension to a server that has Volcano's definitions."""
    obj = manifests.whole_object(kinds.JOBFLOW, schema(custom_resource_definition(kinds.JOBFLOW)), "whole")

    there = ask(apiserver, obj)

    assert there.stored is not None, there.message
    assert ".spec.params" in manifests.lost(obj, there.stored)


def test_status_is_a_subresource_where_it_is_volcanos(ours: ApiServer) -> None:
    base = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    made = ours.call("POST", base, {**job("status-job"), "status": {"state": {"phase": "Running"}}})
    status = {"status": {"state": {"phase": "Running"}, "history": [{"phase": "Running"}], "lastSeen": {"w": {}}}}

    after = ours.call("PATCH", f"{base}/status-job/status", status, content="application/merge-patch+json")

    assert "status" not in made
    assert after["status"] == status["status"]


def job(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox"}
    tasks = [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [container]}}}]
    return {
        "apiVersion": kinds.JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "tasks": tasks},
    }


def test_get_shows_volcanos_columns(ours: ApiServer) -> None:
    expected = {
        "jobs.batch": ["Name", "STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"],
        "podgroups.scheduling": ["Name", "STATUS", "minMember", "RUNNINGS", "AGE", "QUEUE"],
        "queues.scheduling": ["Name", "PARENT"],
        "jobflows.flow": ["Name", "Status", "Age"],
        "jobtemplates.flow": ["Name", "Age"],
    }
    for kind in CUSTOM_KINDS:
        columns = expected.get(f"{kind.plural}.{kind.group.split('.')[0]}")
        if columns is not None:
            assert [column["name"] for column in table(ours, kind)] == columns


def table(server: ApiServer, kind: Kind) -> list[dict[str, Any]]:
    """The columns of ``kubectl get``."""
    import ssl
    import urllib.request

    request = urllib.request.Request(
        f"{server.url}/apis/{kind.api_version}/{kind.plural}",
        headers={
            "Authorization": f"Bearer {server.tokens['admin']}",
            "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io",
        },
    )
    context = ssl.create_default_context(cafile=str(server.certificate_authority))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)["columnDefinitions"]
    return found


def test_short_names_are_volcanos(ours: ApiServer) -> None:
    for kind in CUSTOM_KINDS:
        resources = ours.call("GET", f"/apis/{kind.api_version}")["resources"]
        (found,) = (resource for resource in resources if resource["name"] == kind.plural)
        assert tuple(found.get("shortNames", ())) == kind.short_names
        assert (f"{kind.plural}/status" in [resource["name"] for resource in resources]) == kind.status
