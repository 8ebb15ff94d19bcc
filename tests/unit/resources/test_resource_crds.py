"""The models against Volcano's own resource definitions: the same fields, the same demands, nothing forgotten.

The definitions are read from the shared folder beside the repository (``VCNB_SHARED`` says where else); without it these
tests are skipped.
"""

import json
import os
import re
import warnings
from pathlib import Path

import pytest
import yaml

from vcnb.resources import kinds
from vcnb.resources.models import model_of
from vcnb.resources.models.shape import fields_of, place_at
from vcnb.resources.paths import format_path
from vcnb.resources.schema import check

SHARED = Path(os.environ.get("VCNB_SHARED") or Path(__file__).resolve().parents[4] / "shared")
VOLCANO = (kinds.JOB, kinds.CRONJOB, kinds.COMMAND, kinds.PODGROUP, kinds.QUEUE, kinds.JOBFLOW, kinds.JOBTEMPLATE)

pytestmark = pytest.mark.skipif(not (SHARED / "crds").is_dir(), reason=f"no resource definitions in {SHARED}/crds")

OURS = {
    "JobFlow": {
        "spec": {"params", "failurePolicy", "maxParallel", "activeDeadlineSeconds", "suspend", "plugins", "scheduling"},
        "spec.flows[0]": {
            "templateRef", "when", "switch", "forEach", "loop", "cache", "retry", "allowFailure", "outputs",
        },
        "spec.flows[0].dependsOn": {"strategy", "targetsWithStatus", "timeoutSeconds", "onTimeout"},
        "spec.flows[0].dependsOn.probe": {"periodSeconds", "timeoutSeconds"},
        "spec.flows[0].patch": {"spec"},
    }
}  # fmt: skip
"""What our flows have beyond Volcano's."""


def schema_of(kind):
    path = SHARED / "crds" / f"{kind.group}_{kind.plural}.yaml"
    definition = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def walk(schema, steps=()):
    """Every place of a schema with its steps; list items have index 0, map values key ``x``."""
    yield steps, schema
    for name, below in schema.get("properties", {}).items():
        if steps or name not in {"metadata", "status"}:
            yield from walk(below, (*steps, name))
    if "items" in schema:
        yield from walk(schema["items"], (*steps, 0))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], (*steps, "x"))


def is_template_metadata(steps):
    return steps[-1:] == ("metadata",)


@pytest.mark.parametrize("kind", VOLCANO, ids=str)
def test_every_field_is_known_and_has_its_form(kind):
    places = 0
    for steps, schema in walk(schema_of(kind)):
        place = place_at(model_of(kind), steps)
        assert place is not None, f"{kind}: {format_path(steps)} is not known"
        assert (place.items is not None) == (schema.get("type") == "array"), format_path(steps)
        assert (place.model is not None) == ("properties" in schema), format_path(steps)
        assert (place.values is not None) == isinstance(schema.get("additionalProperties"), dict), format_path(steps)
        places += 1
    assert places >= (1000 if kind in (kinds.JOB, kinds.JOBTEMPLATE, kinds.CRONJOB, kinds.JOBFLOW) else 10)


@pytest.mark.parametrize("kind", VOLCANO, ids=str)
def test_no_field_is_made_up_and_the_same_ones_are_required(kind):
    for steps, schema in walk(schema_of(kind)):
        if "properties" not in schema or is_template_metadata(steps):
            continue
            fields = fields_of(place_at(model_of(kind), steps).model)
        fields = fields_of(place_at(model_of(kind), steps).model)
        ours = OURS.get(kind.kind, {}).get(format_path(steps), set())
        assert set(fields) - set(schema["properties"]) - {"status"} == ours, format_path(steps)
        required = {name for name, place in fields.items() if place.required}
        assert required == set(schema.get("required", ())), format_path(steps)


def nested(kind, steps, value):
    """An object with ``value`` at a path and nothing else."""
    for step in reversed(steps):
        value = [value] if isinstance(step, int) else {step: value}
    return {"apiVersion": kind.api_version, "kind": kind.kind, **value}


def messages_at(kind, steps, value):
    path = format_path(steps)
    return [problem.message for problem in check(nested(kind, steps, value)) if problem.path == path]


def bad_and_good(schema):
    """Values just outside and just inside what a schema demands."""
    bad, good = [], []
    if "minimum" in schema:
        bad.append(schema["minimum"] - 1)
        good.append(schema["minimum"])
    if "maximum" in schema:
        bad.append(schema["maximum"] + 1)
        good.append(schema["maximum"])
    if "enum" in schema:
        bad.append("nonsense")
        good += schema["enum"]
    if "maxLength" in schema:
        bad.append("a" * (schema["maxLength"] + 1))
        good.append("a" * schema["maxLength"])
    if "minLength" in schema:
        bad.append("")
        good.append("a" * schema["minLength"])
    if "pattern" in schema and not schema.get("x-kubernetes-int-or-string"):
        bad += [
            text for text in ("A_b", "-a", "a:b", "a\n") if not re.search(schema["pattern"].replace("$", r"\Z"), text)
        ]
        good += [text for text in ("a", "a-b0") if re.search(schema["pattern"], text)]
    if schema.get("x-kubernetes-int-or-string") and "pattern" in schema:
        bad += ["lots", "1Gib", True]
        good += [1, "500m", "1Gi", "1e3", "-1"]
    if "minItems" in schema:
        bad.append([])
    return bad, good


@pytest.mark.parametrize("kind", VOLCANO, ids=str)
def test_every_demand_on_a_value_is_kept(kind):
    demands = 0
    for steps, schema in walk(schema_of(kind)):
        if "patch" in steps:
            continue
        bad, good = bad_and_good(schema)
        for value in bad:
            assert messages_at(kind, steps, value), f"{kind}: {format_path(steps)} takes {value!r}"
            demands += 1
        for value in good:
            assert not messages_at(kind, steps, value), f"{kind}: {format_path(steps)} refuses {value!r}"
    assert demands or kind is kinds.COMMAND


WRONG = {"string": 5, "integer": "abc", "boolean": "abc", "array": {"a": 1}, "object": [1], "number": "abc"}


@pytest.mark.parametrize("kind", VOLCANO, ids=str)
def test_a_wrong_type_is_told_everywhere(kind):
    for steps, schema in walk(schema_of(kind)):
        if not steps or "type" not in schema or is_template_metadata(steps[:-1]) or steps[0] in ("apiVersion", "kind"):
            continue
        assert messages_at(kind, steps, WRONG[schema["type"]]), f"{kind}: {format_path(steps)}"


@pytest.mark.parametrize("kind", [kinds.JOB, kinds.JOBTEMPLATE, kinds.CRONJOB], ids=str)
def test_keys_of_lists_are_unique(kind):
    lists = 0
    for steps, schema in walk(schema_of(kind)):
        keys = schema.get("x-kubernetes-list-map-keys")
        if not keys:
            continue
        item = {key: 1 if schema["items"]["properties"][key].get("type") == "integer" else "x" for key in keys}
        found = check(nested(kind, steps, [item, dict(item)]))
        assert [problem for problem in found if "used twice" in problem.message], format_path(steps)
        lists += 1
    assert lists > 15


@pytest.mark.parametrize("case", json.loads((SHARED / "golden" / "admission.json").read_text()) if SHARED.is_dir() else [],
                         ids=lambda case: case["name"])  # fmt: skip
def test_what_a_real_server_accepted_is_accepted(case):
    """Except for three mistakes that the server swallows: two unknown fields, and a plugin without arguments."""
    problems = check(case["object"])
    swallowed = case["name"] in {"unknown-field", "unknown-task-field"} or any(
        arguments is None for arguments in case["object"]["spec"].get("plugins", {}).values()
    )
    if case["accepted"]:
        assert bool(problems) == swallowed, problems
    elif "in body" in case.get("message", "") or "Duplicate value" in case.get("message", ""):
        assert problems, case["message"]


def test_fields_of_kubernetes_own_client_are_known():
    """The official client's models, as a second witness for the kinds that Volcano's definitions do not hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = pytest.importorskip("kubernetes.client.models")
    witnesses = [
        (kinds.SERVICE, ("spec",), "V1ServiceSpec"),
        (kinds.SERVICE, ("spec", "ports", 0), "V1ServicePort"),
        (kinds.NODE, ("spec",), "V1NodeSpec"),
        (kinds.NODE, ("spec", "taints", 0), "V1Taint"),
        (kinds.NETWORKPOLICY, ("spec",), "V1NetworkPolicySpec"),
        (kinds.NETWORKPOLICY, ("spec", "ingress", 0), "V1NetworkPolicyIngressRule"),
        (kinds.NETWORKPOLICY, ("spec", "egress", 0), "V1NetworkPolicyEgressRule"),
        (kinds.NETWORKPOLICY, ("spec", "egress", 0, "to", 0), "V1NetworkPolicyPeer"),
        (kinds.NETWORKPOLICY, ("spec", "egress", 0, "ports", 0), "V1NetworkPolicyPort"),
        (kinds.NETWORKPOLICY, ("spec", "egress", 0, "to", 0, "ipBlock"), "V1IPBlock"),
        (kinds.PERSISTENTVOLUMECLAIM, ("spec",), "V1PersistentVolumeClaimSpec"),
        (kinds.CONFIGMAP, (), "V1ConfigMap"),
        (kinds.SECRET, (), "V1Secret"),
        (kinds.PRIORITYCLASS, (), "V1PriorityClass"),
        (kinds.NAMESPACE, ("spec",), "V1NamespaceSpec"),
        (kinds.POD, ("metadata",), "V1ObjectMeta"),
        (kinds.POD, ("metadata", "ownerReferences", 0), "V1OwnerReference"),
    ]
    for kind, steps, name in witnesses:
        known = set(fields_of(place_at(model_of(kind), steps).model))
        assert set(getattr(client, name).attribute_map.values()) - known == set(), name
