"""Pod templates: the rules of Kubernetes itself that a task's template must keep (J8), and whole CPUs (J9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.containers import check_containers
from vcnb.admission.findings import Findings, listing, near
from vcnb.admission.naming import dns_label, dns_subdomain, label_value, qualified_name
from vcnb.admission.reading import amount, at_key, each, items, mapping, number, text

__all__ = ["check_labels", "check_pod_spec", "check_template", "check_whole_cpus"]

_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Exists", "Equal", "Lt", "Gt")
_MAX_INT32: Final = 2147483647


def check_template(template: Any, path: str, findings: Findings) -> None:
    """A PodTemplate: its labels, annotations and pod spec."""
    template = mapping(template)
    metadata = mapping(template.get("metadata"))
    check_labels(metadata, f"{path}.metadata", findings)
    check_pod_spec(template.get("spec"), f"{path}.spec", findings)
    if items(mapping(template.get("spec")).get("ephemeralContainers")):
        findings.refuse(f"{path}.spec.ephemeralContainers", "a pod template may have none; add them to a running pod")


def check_labels(metadata: Mapping[str, Any], path: str, findings: Findings) -> None:
    """Label and annotation keys are qualified names; a label's value is short text."""
    for key, value in mapping(metadata.get("labels")).items():
        where = at_key(f"{path}.labels", key)
        if wrong := qualified_name(key):
            findings.refuse(where, f"the label's name is invalid: {wrong}")
        if isinstance(value, str) and (wrong := label_value(value)):
            findings.refuse(where, f"the label's value is invalid: {wrong}")
    for key in mapping(metadata.get("annotations")):
        if wrong := qualified_name(key.lower()):
            findings.refuse(at_key(f"{path}.annotations", key), f"the annotation's name is invalid: {wrong}")


def check_pod_spec(spec: Any, path: str, findings: Findings) -> None:
    """A pod's spec as Kubernetes validates it; absent fields count with their Kubernetes defaults."""
    spec = mapping(spec)
    volumes = _check_volumes(spec.get("volumes"), f"{path}.volumes", findings)
    check_containers(spec, path, volumes, findings)
    _one_of(spec, "restartPolicy", _RESTART, path, findings)
    _one_of(spec, "dnsPolicy", _DNS, path, findings)
    if spec.get("dnsPolicy") == "None" and not items(mapping(spec.get("dnsConfig")).get("nameservers")):
        findings.refuse(f"{path}.dnsConfig.nameservers", "must name a server, since dnsPolicy is None")
    deadline = number(spec.get("activeDeadlineSeconds"))
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        findings.refuse(f"{path}.activeDeadlineSeconds", f"{deadline} must be from 1 to {_MAX_INT32} seconds")
    grace = number(spec.get("terminationGracePeriodSeconds"))
    if grace is not None and grace < 0:
        findings.refuse(f"{path}.terminationGracePeriodSeconds", f"{grace} must not be negative")
    for field in ("hostname", "subdomain"):
        if (name := text(spec.get(field))) and (wrong := dns_label(name)):
            findings.refuse(f"{path}.{field}", wrong)
    for field in ("serviceAccountName", "priorityClassName"):
        if (name := text(spec.get(field))) and (wrong := dns_subdomain(name)):
            findings.refuse(f"{path}.{field}", wrong)
    for key, value in mapping(spec.get("nodeSelector")).items():
        if wrong := qualified_name(key) or label_value(text(value)):
            findings.refuse(at_key(f"{path}.nodeSelector", key), wrong)
    _check_tolerations(spec.get("tolerations"), f"{path}.tolerations", findings)


def check_whole_cpus(spec: Any, path: str, findings: Findings) -> None:
    """J9: with a topologyPolicy every container and initContainer needs a whole, non-zero CPU request.

    A container without any requests is taken by its limits.
    """
    spec = mapping(spec)
    for field in ("containers", "initContainers"):
        for where, container in each(spec.get(field), f"{path}.{field}"):
            resources = mapping(container.get("resources"))
            side = "requests" if mapping(resources.get("requests")) else "limits"
            given = mapping(resources.get(side)).get("cpu")
            cpu = amount(given)
            if given is not None and cpu is None:
                continue  # no quantity: reported as such
            if not cpu or not cpu.is_integer:
                findings.refuse(
                    f"{where}.resources.{side if given is not None else 'requests'}.cpu",
                    f"a topologyPolicy needs whole CPUs in every container, and {text(container.get('name'))!r} "  # J9
                    + (f"asks for {given}" if given is not None else "asks for none"),
                )


def _one_of(spec: Mapping[str, Any], field: str, allowed: tuple[str, ...], path: str, findings: Findings) -> None:
    value = spec.get(field)
    if isinstance(value, str) and value and value not in allowed:
        findings.refuse(f"{path}.{field}", f"{value!r} is not one of {listing(allowed)}{_suggest(value, allowed)}")


def _suggest(value: str, allowed: tuple[str, ...]) -> str:
    hint = near(value, allowed)
    return hint if "did you mean" in hint else ""


def _check_volumes(volumes: Any, path: str, findings: Findings) -> dict[str, str]:
    """The declared volumes by name with their paths."""
    declared: dict[str, str] = {}
    for where, volume in each(volumes, path):
        name = text(volume.get("name"))
        if not name:
            findings.refuse(f"{where}.name", "is required: volumeMounts refer to it")
        elif wrong := dns_label(name):
            findings.refuse(f"{where}.name", wrong)
        elif name in declared:
            findings.refuse(f"{where}.name", f"{name!r} is already the name of {declared[name]}")
        declared.setdefault(name, where)
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            findings.refuse(where, f"a volume has one source only; this one has {listing(sources)}")
        for source, field in (
            ("persistentVolumeClaim", "claimName"),
            ("hostPath", "path"),
            ("configMap", "name"),
            ("secret", "secretName"),
        ):
            if isinstance(volume.get(source), Mapping) and not text(volume[source].get(field)):
                findings.refuse(f"{where}.{source}.{field}", "is required")
    return declared


def _check_tolerations(tolerations: Any, path: str, findings: Findings) -> None:
    for where, toleration in each(tolerations, path):
        _one_of(toleration, "operator", _OPERATORS, where, findings)
        _one_of(toleration, "effect", _EFFECTS, where, findings)
        key, operator = text(toleration.get("key")), text(toleration.get("operator"))
        if not key and operator != "Exists":
            findings.refuse(f"{where}.operator", "must be Exists when key is empty (which tolerates every taint)")
        if operator == "Exists" and text(toleration.get("value")):
            findings.refuse(f"{where}.value", "must be empty when operator is Exists")
