"""Containers of a pod spec as Kubernetes validates them (part of J8): names, ports, env, mounts, probes, resources."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from vcnb.admission.findings import Findings, listing
from vcnb.admission.naming import dns_label, env_name, port_name, qualified_name
from vcnb.admission.reading import amount, at_key, each, mapping, number, text

__all__ = ["check_containers"]

_PULL: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_OVERCOMMIT: Final = frozenset(_RESOURCES)


def check_containers(spec: Mapping[str, Any], path: str, volumes: Mapping[str, str], findings: Findings) -> None:
    """All containers and initContainers of a pod spec; ``volumes`` are the declared ones."""
    if not each_container(spec.get("containers")):
        findings.refuse(f"{path}.containers", "at least one container is required")
    names: dict[str, str] = {}
    host_ports: dict[tuple[int, str], str] = {}
    for field in ("containers", "initContainers"):
        for where, container in each(spec.get(field), f"{path}.{field}"):
            _check_name(container, where, names, findings)
            if not text(container.get("image")).strip():
                findings.refuse(f"{where}.image", "is required: the container image, such as python:3.11")
            _one_of(container, "imagePullPolicy", _PULL, where, findings)
            _check_ports(container, where, host_ports, findings, host_network=spec.get("hostNetwork") is True)
            _check_env(container.get("env"), f"{where}.env", findings)
            _check_env_from(container.get("envFrom"), f"{where}.envFrom", findings)
            _check_mounts(container.get("volumeMounts"), f"{where}.volumeMounts", volumes, findings)
            _check_probes(container, where, findings, init=field == "initContainers")
            _check_resources(container.get("resources"), f"{where}.resources", findings)


def each_container(containers: Any) -> list[Mapping[str, Any]]:
    """The containers of a list, as mappings."""
    return [container for _, container in each(containers, "")]


def _one_of(value: Mapping[str, Any], field: str, allowed: tuple[str, ...], path: str, findings: Findings) -> None:
    given = value.get(field)
    if isinstance(given, str) and given and given not in allowed:
        findings.refuse(f"{path}.{field}", f"{given!r} is not one of {listing(allowed)}")


def _check_name(container: Mapping[str, Any], where: str, names: dict[str, str], findings: Findings) -> None:
    name = text(container.get("name"))
    if not name:
        findings.refuse(f"{where}.name", "is required")
    elif wrong := dns_label(name):
        findings.refuse(f"{where}.name", wrong)
    elif name in names:
        findings.refuse(f"{where}.name", f"{name!r} is already the name of {names[name]}")
    names.setdefault(name, where)


def _check_ports(
    container: Mapping[str, Any],
    where: str,
    host_ports: dict[tuple[int, str], str],
    findings: Findings,
    *,
    host_network: bool,
) -> None:
    names: set[str] = set()
    for at, port in each(container.get("ports"), f"{where}.ports"):
        inside, outside = number(port.get("containerPort")), number(port.get("hostPort"))
        if inside is None or not 1 <= inside <= 65535:
            findings.refuse(f"{at}.containerPort", f"{port.get('containerPort')!r} is no port from 1 to 65535")
        if outside and not 1 <= outside <= 65535:
            findings.refuse(f"{at}.hostPort", f"{outside} is no port from 1 to 65535")
        if host_network and outside and outside != inside:
            findings.refuse(f"{at}.hostPort", f"{outside} must equal containerPort {inside}, since hostNetwork is true")
        _one_of(port, "protocol", _PROTOCOLS, at, findings)
        if name := text(port.get("name")):
            if wrong := port_name(name):
                findings.refuse(f"{at}.name", wrong)
            elif name in names:
                findings.refuse(f"{at}.name", f"{name!r} already names another port of this container")
            names.add(name)
        if outside:
            key = (outside, text(port.get("protocol")) or "TCP")
            if key in host_ports:
                findings.refuse(f"{at}.hostPort", f"{outside} is already taken by {host_ports[key]}")
            host_ports.setdefault(key, at)


def _check_env(env: Any, path: str, findings: Findings) -> None:
    for where, entry in each(env, path):
        name = text(entry.get("name"))
        if not name:
            findings.refuse(f"{where}.name", "is required")
        elif wrong := env_name(name):
            findings.refuse(f"{where}.name", f"is no name of an environment variable: {wrong}")
        source = entry.get("valueFrom")
        if source is None:
            continue
        if text(entry.get("value")):
            findings.refuse(f"{where}.valueFrom", "value and valueFrom exclude each other; keep one")
        if isinstance(source, Mapping) and len(source) != 1:
            findings.refuse(
                f"{where}.valueFrom",
                "needs exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef",
            )


def _check_env_from(sources: Any, path: str, findings: Findings) -> None:
    for where, source in each(sources, path):
        given = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        if len(given) != 1:
            findings.refuse(where, "needs exactly one of configMapRef and secretRef")


def _check_mounts(mounts: Any, path: str, volumes: Mapping[str, str], findings: Findings) -> None:
    taken: dict[str, str] = {}
    for where, mount in each(mounts, path):
        name, at = text(mount.get("name")), text(mount.get("mountPath"))
        if not name:
            findings.refuse(f"{where}.name", "is required: a volume of spec.volumes")
        elif name not in volumes:
            close = difflib.get_close_matches(name, list(volumes), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; declared: {listing(volumes) or 'none'}"
            findings.refuse(f"{where}.name", f"there is no volume {name!r} in this pod's volumes{hint}")
        if not at:
            findings.refuse(f"{where}.mountPath", "is required")
        elif at in taken:
            findings.refuse(f"{where}.mountPath", f"{at!r} is already the mount path of {taken[at]}")
        taken.setdefault(at, where)


def _check_probes(container: Mapping[str, Any], where: str, findings: Findings, *, init: bool) -> None:
    sidecar = container.get("restartPolicy") == "Always"
    for field in _PROBES:
        probe = container.get(field)
        if not isinstance(probe, Mapping):
            continue
        if init and not sidecar:
            findings.refuse(f"{where}.{field}", "an initContainer ends before the others begin and may have no probe")
        elif sum(handler in probe for handler in _HANDLERS) != 1:
            findings.refuse(f"{where}.{field}", f"needs exactly one of {listing(_HANDLERS)}")


def _check_resources(resources: Any, path: str, findings: Findings) -> None:
    resources = mapping(resources)
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, given in amounts.items():
            _check_amount(name, given, at_key(f"{path}.{side}", name), findings)
    for name, given in requests.items():
        asked, limit = amount(given), amount(limits[name]) if name in limits else None
        if asked is None or (name in limits and limit is None):
            continue
        if limit is None:
            if not _may_overcommit(name):
                findings.refuse(
                    at_key(f"{path}.limits", name), f"must be set too: {name} cannot be shared (requested {given})"
                )
        elif asked > limit:
            findings.refuse(at_key(f"{path}.requests", name), f"{given} is more than the limit {limits[name]}")
        elif asked != limit and not _may_overcommit(name):
            findings.refuse(
                at_key(f"{path}.requests", name),
                f"{given} must equal the limit {limits[name]}: {name} cannot be shared",
            )


def _may_overcommit(name: str) -> bool:
    return name in _OVERCOMMIT or not ("/" in name or name.startswith("hugepages-"))


def _check_amount(name: str, given: Any, where: str, findings: Findings) -> None:
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        close = difflib.get_close_matches(name, _RESOURCES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "others need a domain, such as nvidia.com/gpu"
        findings.refuse(where, f"{name!r} is none of {listing(_RESOURCES)}; {hint}")
    elif wrong := qualified_name(name):
        findings.refuse(where, f"is no resource name: {wrong}")
    value = amount(given)
    if value is None:
        findings.refuse(where, f"{given!r} is no quantity; write for example 500m (half a CPU), 2, or 1Gi")
    elif value.nanos < 0:
        findings.refuse(where, f"{given} must not be negative")
    elif "/" in name and not value.is_integer:
        findings.refuse(where, f"{given} must be a whole number, as for every resource with a domain")
