"""``vcnb crds`` against Volcano's own definitions, field by field; no server needed.

The definitions are read from the shared folder beside the repository (``VCNB_SHARED`` says where else); without it the
comparison is skipped, and what can be said without it is still tested.
"""

import json
import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from vcnb.cli.main import main
from vcnb.kube.crds import CUSTOM_KINDS, custom_resource_definition, custom_resource_definitions
from vcnb.kube.crds.marks import ATOMIC, ATOMIC_FIELDS, DEFAULTS, EXTENSIONS, FREE, UNSIZED
from vcnb.kube.crds.schema import schema_of
from vcnb.resources import kinds
from vcnb.resources.models import model_of
from vcnb.resources.models.base import Model
from vcnb.resources.models.status import STATUS

SHARED = Path(os.environ.get("VCNB_SHARED") or Path(__file__).resolve().parents[4] / "shared")
needs_volcano = pytest.mark.skipif(not (SHARED / "crds").is_dir(), reason=f"no resource definitions in {SHARED}/crds")

KUBECTL_LIMIT = 262_144
"""Bytes of an annotation; ``kubectl apply`` keeps the whole manifest in one."""


def volcanos(kind):
    text = (SHARED / "crds" / f"{kind.group}_{kind.plural}.yaml").read_text()
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def meaning(schema):
    """A schema without what has no meaning for a server: descriptions, orders, a list's merge strategy by default."""
    found = {key: value for key, value in schema.items() if key != "description"}
    if found.get("x-kubernetes-list-type") == "atomic":
        del found["x-kubernetes-list-type"]
    for key in ("required", "enum"):
        if key in found:
            found[key] = sorted(found[key])
    if "properties" in found:
        found["properties"] = {name: meaning(value) for name, value in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = meaning(found[key])
    return found


def differences(path, theirs, ours):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from differences(f"{path}/{key}", theirs.get(key, "absent"), ours.get(key, "absent"))
    elif theirs != ours:
        yield f"{path}: {theirs!r} is {ours!r} here"


def top_schema(definition):
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def without_schema(definition):
    spec = json.loads(json.dumps(definition["spec"]))
    for version in spec["versions"]:
        del version["schema"]
        version["subresources"] = version.get("subresources") or {}
    return spec


@needs_volcano
@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_a_plain_definition_is_volcanos_field_by_field(kind):
    theirs, ours = volcanos(kind), custom_resource_definition(kind, plain=True)

    assert list(differences("", meaning(top_schema(theirs)), meaning(top_schema(ours)))) == []
    assert list(differences("", without_schema(theirs), without_schema(ours))) == []
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_the_whole_definition_only_adds_fields(kind):
    plain = meaning(top_schema(custom_resource_definition(kind, plain=True)))
    whole = meaning(top_schema(custom_resource_definition(kind)))

    assert set(added(plain, whole)) == ADDED.get(kind.kind, set())


ADDED = {
    "Job": {"status.history", "status.lastSeen", "status.executedCommands"},
    "JobFlow": {
        *(
            f"spec.{name}"
            for name in (
                ["params", "failurePolicy", "maxParallel", "activeDeadlineSeconds", "suspend", "plugins", "scheduling"]
            )
        ),
        *(
            f"spec.flows[].{name}"
            for name in [
                "templateRef",
                "when",
                "switch",
                "forEach",
                "loop",
                "cache",
                "retry",
                "allowFailure",
                "outputs",
            ]
        ),
        *(
            f"spec.flows[].dependsOn.{name}"
            for name in ["strategy", "targetsWithStatus", "timeoutSeconds", "onTimeout"]
        ),
        *(f"spec.flows[].dependsOn.probe.{name}" for name in ("periodSeconds", "timeoutSeconds")),
        "spec.flows[].patch.spec",
        *(
            f"status.{name}"
            for name in (
                ["nodes", "history", "startTime", "deadlineFrom", "suspendedAt", "suspendedSeconds", "handledRequests"]
            )
        ),
        *(f"status.state.{name}" for name in ("reason", "message")),
    },
}


def added(plain, whole, path=""):
    """The paths of fields that only the whole schema has; anything else that differs is an error.

    A flow's patch takes anything there.
    """
    if path == "spec.flows[].patch.jobSpec":
        assert whole == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return
    for key in {*plain, *whole} - {"properties", "items", "additionalProperties"}:
        assert plain.get(key) == whole.get(key), f"{path}: {key}"
    fields = whole.get("properties", {})
    assert set(plain.get("properties", {})) <= set(fields)
    for name, below in fields.items():
        place = f"{path}.{name}" if path else name
        if name not in plain["properties"]:
            yield place
        else:
            yield from added(plain["properties"][name], below, place)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        assert (key in plain) == (key in whole)
        if isinstance(whole.get(key), dict):
            yield from added(plain[key], whole[key], path + mark)


def test_kubectl_can_apply_them():
    for definition in custom_resource_definitions():
        assert len(json.dumps(definition)) < KUBECTL_LIMIT, definition["metadata"]["name"]


def structural_errors(schema, path="spec"):
    """What the server asks of a schema: a type everywhere, and for what identifies a list's item a value or a default."""
    if "type" not in schema and not any(key.startswith("x-kubernetes-") for key in schema):
        yield f"{path} has no type"
    keys = schema.get("x-kubernetes-list-map-keys", ())
    for key in keys:
        item = schema["items"]
        if key not in item.get("required", ()) and "default" not in item["properties"][key]:
            yield f"{path}[].{key} may be left out"
    for name, below in schema.get("properties", {}).items():
        yield from structural_errors(below, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from structural_errors(schema[key], f"{path}[]")


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=str)
def test_the_schema_is_structural(kind):
    assert list(structural_errors(top_schema(custom_resource_definition(kind)))) == []


def models():
    found, waiting = {}, [*(model_of(kind) for kind in CUSTOM_KINDS), *STATUS.values()]
    while waiting:
        model = waiting.pop()
        if model.__name__ in found:
            assert found[model.__name__] is model, f"two models are called {model.__name__}"
            continue
        found[model.__name__] = model
        waiting += [below for below in below_of(model) if isinstance(below, type) and issubclass(below, Model)]
    return found


def below_of(annotation):
    from typing import get_args, get_type_hints

    if isinstance(annotation, type) and issubclass(annotation, Model):
        for hint in get_type_hints(annotation, include_extras=True).values():
            yield from parts_of(hint, get_args)


def parts_of(hint, get_args):
    yield hint
    for part in get_args(hint):
        yield from parts_of(part, get_args)


def test_every_mark_names_a_model_and_a_field():
    known = models()

    for name in (*ATOMIC, *EXTENSIONS):
        assert name in known
    for name, field in (
        *DEFAULTS,
        *ATOMIC_FIELDS,
        *UNSIZED,
        *FREE,
        *((n, f) for n, fs in EXTENSIONS.items() for f in fs),
    ):
        assert field in schema_of(known[name])["properties"], f"{name} has no {field}"


def test_another_kind_is_refused():
    with pytest.raises(ValueError, match="Pod is no custom resource"):
        custom_resource_definition(kinds.POD)


def crds(*arguments):
    return CliRunner().invoke(main, ["crds", *arguments])


def test_the_command_prints_all_as_yaml_documents():
    done = crds()

    assert done.exit_code == 0
    documents = list(yaml.safe_load_all(done.output))
    assert [document["spec"]["names"]["kind"] for document in documents] == [str(kind) for kind in CUSTOM_KINDS]
    assert documents == custom_resource_definitions()


def test_the_command_prints_chosen_kinds_as_a_list():
    done = crds("vj", "jobflows", "-o", "json", "--plain")

    listed = json.loads(done.output)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == [custom_resource_definition(kind, plain=True) for kind in (kinds.JOB, kinds.JOBFLOW)]


def test_the_command_prints_names():
    assert crds("queue", "-o", "name").output == (
        "customresourcedefinition.apiextensions.k8s.io/queues.scheduling.volcano.sh\n"
    )


@pytest.mark.parametrize(("name", "words"), [("jbo", "did you mean"), ("pods", "every Kubernetes server knows")])
def test_what_is_no_custom_kind_is_a_usage_error(name, words):
    done = crds(name)

    assert done.exit_code == 2
    assert words in done.output
