"""Every example of README.md works as it is written."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vcnb
from integration.notebook.kernels import Kernel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"(?:^|\n\n)((?:    .*(?:\n|$)|\n(?=    ))+)", README)
EXAMPLES = ["\n".join(line[4:] for line in block.rstrip().split("\n")) for block in BLOCKS]
TRAIN = 'print("trained")\n'


def example(beginning):
    (found,) = [each for each in EXAMPLES if each.startswith(beginning)]
    return found


def environment(tmp_path, **more):
    return {**os.environ, "VCNB_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), **more}


def python(text, tmp_path, **more):
    (tmp_path / "train.py").write_text(TRAIN)
    return subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path,
        env=environment(tmp_path, **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_block_of_the_readme_is_tested_here():
    begin = ("make demo", "%load_ext", "import vcnb", "square =", "job = vcnb.attach", "vcnb apply")

    assert len(EXAMPLES) == len(begin)
    assert all(each.startswith(start) for each, start in zip(EXAMPLES, begin, strict=True))


def test_the_two_commands_are_targets_of_make():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert set(re.findall(r"make (\w+)", example("make demo"))) <= set(targets)


def test_the_cells_run_in_a_kernel(tmp_path):
    cells = example("%load_ext").split("\n\n")
    kernel = Kernel(environment(tmp_path, VCNB_CLUSTER="memory://"))
    try:
        ran = kernel.run_all(*cells, "print(job.phase, len(job.pods), job.logs(index=1))")
    finally:
        kernel.close()

    assert [cell.status for cell in ran] == ["ok"] * 3
    assert ran[2].text.startswith("Completed 3 hello from worker 1")


def test_the_python_example_runs_as_a_script(tmp_path):
    ran = python(example("import vcnb"), tmp_path, VCNB_CLUSTER="memory://?cpus=8")

    assert ran.returncode == 0, ran.stderr
    assert "Completed trained" in ran.stdout
    assert "Job train" in ran.stdout


def test_functions_flows_and_coming_back(tmp_path):
    first = example("import vcnb")
    functions = example("square =")
    again = example("job = vcnb.attach")
    script = f"{first}\n{functions}\n{again}\nprint(job.name, square.map(range(8)).results(), flow)"

    ran = python(script, tmp_path, VCNB_CLUSTER="embedded://readme?cpus=16")

    assert ran.returncode == 0, ran.stderr
    assert "train [0, 1, 4, 9, 16, 25, 36, 49]" in ran.stdout


def test_the_shell_example(tmp_path):
    job = vcnb.Job(name="train", tasks=[vcnb.Task("w", command=["echo", "trained"])])
    (tmp_path / "job.yaml").write_text(json.dumps(job.to_manifest()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    ran = subprocess.run(
        [shutil.which("sh"), "-c", example("vcnb apply")],
        cwd=tmp_path,
        env=environment(tmp_path, PATH=path, VCNB_CLUSTER=f"embedded://readme?dir={tmp_path}/cluster"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].endswith("trained")


def test_every_file_that_it_links_to_is_there():
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if not link.startswith("http")]

    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
