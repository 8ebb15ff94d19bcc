"""One examination: this machine, and the cluster that was asked for."""

from __future__ import annotations

import os
from pathlib import Path

from vcnb.client.doctor.machine import embedded, packages
from vcnb.client.doctor.report import Finding, Report
from vcnb.client.url import DEFAULT_URL, Target, parse_url

__all__ = ["examine"]


async def examine(target: Target | None = None) -> Report:
    """Look at everything that ``target`` needs (default: ``VCNB_CLUSTER``, else the default embedded cluster).

    For an embedded cluster Kubernetes is looked at, too, where there is a kubeconfig; what is wrong there is a note then.
    """
    target = target or parse_url(os.environ.get("VCNB_CLUSTER") or DEFAULT_URL)
    findings: list[Finding] = [*packages()]
    if target.scheme != "kube":
        findings += embedded(target)
    if target.scheme == "kube" or _has_kubeconfig():
        from vcnb.client.doctor.kubernetes import kubernetes

        asked = target.scheme == "kube"
        async for finding in kubernetes(target if asked else parse_url("kube://")):
            findings.append(finding if asked or finding.level != "problem" else finding._replace(level="note"))
    return Report(findings)


def _has_kubeconfig() -> bool:
    named = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    return any(Path(path).is_file() for path in named.split(os.pathsep) if path)
