"""The rules that Kubernetes has for names, labels and environment variables; each returns why a text breaks it, or None."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "dns_label",
    "dns_subdomain",
    "env_name",
    "label_value",
    "port_name",
    "qualified_name",
    "service_name",
]

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_PORT: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LENGTH: Final = 63
_ENDS: Final = "and must begin and end with a letter or digit"


def _length(name: str, limit: int) -> str | None:
    return f"{name!r} has {len(name)} characters; at most {limit} are allowed" if len(name) > limit else None


def dns_label(name: str) -> str | None:
    """A DNS-1123 label: at most 63 of ``a-z 0-9 -``."""
    if not _LABEL.fullmatch(name):
        return f"{name!r} may only have lower-case letters, digits and '-', {_ENDS}"
    return _length(name, _LENGTH)


def service_name(name: str) -> str | None:
    """A DNS-1035 label, as a Service needs: a DNS label that begins with a letter."""
    if not _SERVICE.fullmatch(name):
        return (
            f"{name!r} may only have lower-case letters, digits and '-', must begin with a letter and not end with '-'"
        )
    return _length(name, _LENGTH)


def dns_subdomain(name: str, limit: int = 253) -> str | None:
    """A DNS-1123 subdomain: labels joined by dots, as object names are."""
    if not _SUBDOMAIN.fullmatch(name):
        return f"{name!r} may only have lower-case letters, digits, '-' and '.', and each part must begin and end with a letter or digit"
    return _length(name, limit)


def qualified_name(name: str) -> str | None:
    """A label key: at most 63 letters, digits, ``- _ .``, with an optional ``domain/`` before it."""
    prefix, slash, local = name.rpartition("/")
    if slash and (not prefix or "/" in prefix):
        return f"{name!r} may have one '/' at most, after a domain"
    if slash and (wrong := dns_subdomain(prefix)):
        return f"the domain of {name!r} is wrong: {wrong}"
    if not _QUALIFIED.fullmatch(local):
        return f"{name!r} may only have letters, digits, '-', '_' and '.', {_ENDS}"
    return _length(local, _LENGTH)


def label_value(value: str) -> str | None:
    """A label's value: empty, or like a label key without domain."""
    if value and not _QUALIFIED.fullmatch(value):
        return f"{value!r} may only have letters, digits, '-', '_' and '.', {_ENDS}"
    return _length(value, _LENGTH)


def env_name(name: str) -> str | None:
    """An environment variable: letters, digits, ``- _ .``, not beginning with a digit, neither ``.`` nor ``..``."""
    if not _ENV.fullmatch(name) or name == "." or name.startswith(".."):
        return f"{name!r} may only have letters, digits, '_', '-' and '.', and must not begin with a digit"
    return None


def port_name(name: str) -> str | None:
    """A port's name: at most 15 lower-case letters, digits and single ``-``, at least one letter."""
    if not _PORT.fullmatch(name) or "--" in name or not re.search("[a-z]", name):
        return f"{name!r} may only have lower-case letters, digits and single '-' between them, and at least one letter"
    return _length(name, 15)
