"""Job plugins as admission sees them: J2 and J15, and what their arguments are surely meant to say.

The plugins themselves only log a bad argument and go on with a default, so what is wrong with arguments is a warning
here. Source: Volcano's plugin framework (Go ``flag`` rules), one table row per plugin.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vcnb.admission.findings import Findings, listing, near
from vcnb.admission.naming import service_name
from vcnb.admission.reading import at_key, items, mapping

__all__ = ["PLUGINS", "Flags", "adds_service", "check_plugins", "parse_arguments"]


@dataclass(frozen=True)
class Flags:
    """The arguments that one plugin knows: by name their type (``str``, ``int`` or ``bool``), and roles with defaults.

    A role is a flag whose value is the name of a task.
    """

    types: Mapping[str, type] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_types(self) -> dict[str, type]:
        """Every flag, roles included."""
        return {**dict.fromkeys(self.roles, str), **self.types}


PLUGINS: Final[Mapping[str, Flags]] = {
    "ssh": Flags({"ssh-key-file-path": str, "ssh-private-key": str, "ssh-public-key": str, "ssh-port": int}),
    "env": Flags(),
    "svc": Flags({"publish-not-ready-addresses": bool, "disable-network-policy": bool, "inject-hosts-env": bool}),
    "tensorflow": Flags({"port": int}, {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator"}),
    "mpi": Flags({"port": int}, {"master": "master", "worker": "worker"}),
    "pytorch": Flags(
        {"port": int, "wait-master-enabled": bool, "wait-master-timeout": int, "wait-master-image": str},
        {"master": "master", "worker": "worker"},
    ),
    "hcclrank": Flags({}, {"master": "master", "worker": "worker"}),
    "ray": Flags(
        {"headContainer": str, "workerContainer": str, "port": int, "dashboardPort": int, "clientPort": int},
        {"head": "head", "worker": "worker"},
    ),
}
"""The plugins of Volcano and their arguments. Defaults of roles are the task names they look for."""

_NEEDED: Final = {"mpi": ("worker",), "pytorch": ("master", "worker"), "hcclrank": ("master",), "ray": ("head",)}
_NEEDS_SERVICE: Final = frozenset({"svc", "tensorflow", "mpi", "pytorch", "ray"})
_BOOLEANS: Final = frozenset({"1", "0", "t", "f", "T", "F", "true", "false", "TRUE", "FALSE", "True", "False"})
_INTEGER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]*|0[bB][01_]+|[1-9][0-9_]*)")


def adds_service(plugins: Any) -> bool:
    """Whether these plugins (after defaulting or before) make a Service that carries the job's name."""
    return not _NEEDS_SERVICE.isdisjoint(mapping(plugins))


def parse_arguments(name: str, arguments: Any) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """The flags that the plugin will see, and what is wrong: (index of the argument, what).

    As Go's flag package: one or two dashes; booleans need ``=``; the first unknown flag, or word without a dash, ends
    the parsing, so all after it is lost.
    """
    types = PLUGINS[name].all_types
    values: dict[str, str] = {}
    wrong: list[tuple[int, str]] = []
    words = [word if isinstance(word, str) else str(word) for word in items(arguments)]
    index = 0
    while index < len(words):
        word = words[index]
        flag, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or word == "--":
            wrong.append((index, f"{word!r} is no flag; the plugin ignores it and all that follows"))
            break
        if flag not in types:
            known = [f"--{known}" for known in types]
            hint = near(f"--{flag}", known, "it knows") if known else "; it takes no arguments"
            wrong.append((index, f"plugin {name} has no flag {'--' + flag!r} and ignores what follows{hint}"))
            break
        if not equals and types[flag] is not bool:
            index += 1
            if index == len(words):
                wrong.append((index - 1, f"{word!r} has no value; write --{flag}=VALUE"))
                break
            value = words[index]
        values[flag] = value if equals or types[flag] is not bool else "true"
        if types[flag] is int and not _INTEGER.fullmatch(values[flag]):
            wrong.append((index, f"{values[flag]!r} is no whole number; the plugin takes 0 for --{flag}"))
            break
        if types[flag] is bool and values[flag] not in _BOOLEANS:
            wrong.append((index, f"{values[flag]!r} is neither true nor false; the plugin takes false for --{flag}"))
            break
        index += 1
    return values, wrong


def check_plugins(plugins: Any, tasks: Collection[str], job: str, findings: Findings, path: str = "spec") -> None:
    """J2 (the mpi master task exists), J15 (the plugin exists), and warnings about arguments and roles."""
    for name, arguments in mapping(plugins).items():
        where = at_key(f"{path}.plugins", name)
        if name not in PLUGINS:
            findings.refuse(where, f"there is no job plugin {name!r}{near(name, PLUGINS, 'plugins')}")  # J15
            continue
        if arguments is None:
            findings.mistake(
                where, f"has no value, so Volcano would leave the plugin off; write '{name}: []' to turn it on"
            )
        values, wrong = parse_arguments(name, arguments)
        for index, what in wrong:
            findings.warn(f"{where}[{index}]", what)
        _check_roles(name, values, tasks, where, findings)
    if adds_service(plugins) and job and (bad := service_name(job)):
        findings.mistake("metadata.name", f"plugin svc makes a Service of this name, which must be stricter: {bad}")


def _check_roles(name: str, values: Mapping[str, str], tasks: Collection[str], where: str, findings: Findings) -> None:
    roles = PLUGINS[name].roles
    master = values.get("master", roles.get("master"))
    if name == "mpi" and master not in tasks:
        findings.refuse(
            where,
            f"there is no task {master!r} to be the mpi master; name it with '--master=TASK'{near(master, tasks, 'tasks')}",  # J2
        )
    if name == "tensorflow" and not any(values.get(role, default) in tasks for role, default in roles.items()):
        findings.warn(where, f"no task has a role of tensorflow; it looks for tasks {listing(roles.values())}")
    for role in roles:
        named, needed = values.get(role), role in _NEEDED.get(name, ())
        task = named or roles[role]
        if (named or needed) and task not in tasks and not (name == "mpi" and role == "master"):
            findings.warn(
                where, f"no task is the {role} of plugin {name}: it looks for {task!r}{near(task, tasks, 'tasks')}"
            )
