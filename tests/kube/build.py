"""Builds the API server that tests/integration/kube runs against: ``python tests/kube/build.py [folder]``.

go.mod beside this file pins the version. The first build takes about four minutes on two cores and half a gigabyte of
downloads; from Go's cache it takes seconds. etcd is the system's own (Debian: etcd-server).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ASSETS = HERE.parents[1] / ".kube-assets"
TOOLS = ("kube-apiserver", "etcd")
TOOL = "k8s.io/kubernetes/cmd/kube-apiserver"


class CannotBuild(Exception):
    """What is missing, and how to get it."""


def kubernetes_version() -> str:
    """The version of Kubernetes that go.mod asks for, as ``v1.36.1``."""
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (HERE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, "go.mod names no k8s.io/kubernetes"
    return found[1]


def there(folder: Path) -> bool:
    """Whether a folder has what is needed."""
    return all(os.access(folder / tool, os.X_OK) for tool in TOOLS)


def build(folder: Path = ASSETS) -> Path:
    """Put kube-apiserver and a link to etcd into ``folder``; returns it. Raises CannotBuild with the reason."""
    go, etcd = shutil.which("go"), shutil.which("etcd")
    if go is None:
        raise CannotBuild("there is no go to build kube-apiserver with (Go 1.26 or later, https://go.dev/dl)")
    if etcd is None:
        raise CannotBuild("there is no etcd (Debian: apt-get install etcd-server)")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "kube-apiserver"
    made = folder / f".kube-apiserver.{os.getpid()}"
    command = [go, "build", "-trimpath", "-ldflags", _ldflags(), "-o", str(made), TOOL]
    try:
        done = subprocess.run(
            command, cwd=HERE, env={**os.environ, "CGO_ENABLED": "0"}, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise CannotBuild(f"go build of kube-apiserver failed:\n{done.stderr[-2000:]}")
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)
    link = folder / "etcd"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(etcd)
    return folder


def _ldflags() -> str:
    """Without symbols, and with the version that the server reports (clients compare it)."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    said = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    return " ".join(["-s", "-w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in said.items())])


def main() -> int:
    """Build, unless KUBEBUILDER_ASSETS has it already, and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    folder = parser.parse_args().folder
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if folder is None and named and there(Path(named)):
        print(named)
        return 0
    try:
        print(build((folder or ASSETS).resolve()))
    except CannotBuild as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
