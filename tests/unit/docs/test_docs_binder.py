"""binder/: what mybinder.org installs agrees with pyproject.toml, and is there."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lines(name):
    return [line for line in (BINDER / name).read_text().splitlines() if line and not line.startswith("#")]


def test_requirements_are_those_of_the_package_with_the_demo_and_jupyterlab():
    extras = PROJECT["optional-dependencies"]
    lab = [each for each in extras["test"] if each.startswith("jupyterlab")]

    assert sorted(lines("requirements.txt")) == sorted([*PROJECT["dependencies"], *extras["demo"], *lab])


def test_requirements_come_from_pypi_by_name():
    for line in lines("requirements.txt"):
        assert re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z]+\])?(([<>=!~]=?|!=)[0-9.]+,?)*", line), line


def test_pip_finds_every_requirement_satisfied_here():
    """Without asking an index: all of it is installed where tests run."""
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "-r", str(BINDER / "requirements.txt")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert "Would install" not in ran.stdout


def test_debian_packages_are_those_that_ci_installs():
    ci = (ROOT / ".ci" / "run").read_text()

    assert lines("apt.txt") == ["bubblewrap"]
    assert all(f"packages+=({name})" in ci for name in lines("apt.txt"))


def test_the_python_is_one_that_the_package_supports():
    (runtime,) = lines("runtime.txt")
    version = tuple(map(int, runtime.removeprefix("python-").split(".")))
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))

    assert version >= least
    assert f"Programming Language :: Python :: {runtime.removeprefix('python-')}" in PROJECT["classifiers"]


def test_the_last_step_is_a_program_that_sh_can_read():
    script = BINDER / "postBuild"

    assert os.access(script, os.X_OK)
    assert script.read_text().startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(script)], check=True, timeout=10)
    assert "--no-deps" in script.read_text()


def test_the_readme_has_a_badge_that_opens_a_tutorial():
    found = re.search(
        r"\[!\[Binder\]\(https://mybinder\.org/badge_logo\.svg\)\]\((\S+)\)", (ROOT / "README.md").read_text()
    )

    assert found is not None
    path = re.search(r"urlpath=lab/tree/(\S+)$", found.group(1))
    assert path is not None
    assert (ROOT / path.group(1)).is_file()


@pytest.mark.parametrize("name", ["quickstart", "gang", "sweep", "flows", "pipeline"])
def test_tutorials_need_only_what_is_installed(name):
    import json

    known = {"sklearn", "numpy", "pandas", "plotly", "vcnb", "papermill", *sys.stdlib_module_names}
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")

    assert set(re.findall(r"^\s*(?:import|from) (\w+)", code, re.MULTILINE)) <= known
