"""Run the quickstart notebook through papermill on an embedded cluster and print what happened (``make demo``)."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE.parent / "out"


def main() -> int:
    """Returns 0 when the notebook ran and its job Completed."""
    import papermill

    OUT.mkdir(exist_ok=True)
    executed = OUT / "quickstart.ipynb"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vcnb-demo-") as scratch:
        report_file = Path(scratch) / "report.json"
        papermill.execute_notebook(
            str(HERE / "quickstart.ipynb"),
            str(executed),
            parameters={
                "cluster_url": f"embedded://demo?dir={scratch}/cluster",
                "workers": 4,
                "folds": 5,
                "report_file": str(report_file),
            },
            progress_bar=False,
            log_output=False,
            extra_arguments=["--IPKernelApp.log_level=50"],  # the kernel's own remarks are not the demo's
        )
        report = json.loads(report_file.read_text())
    print(summary(report, executed, time.monotonic() - began))
    return 0 if report["phase"] == "Completed" else 1


def summary(report: dict[str, Any], executed: Path, took: float) -> str:
    """The report as text: phases with times, pods, the result table, and where the executed notebook lies."""
    lines = [
        "",
        f"job {report['name']}: {report['phase']}",
        f"pods run as: {report['runtime']}",
        "",
        "phases (seconds since the job was created)",
        *(f"  {entry['phase']:<12} {entry['at']:8.3f}" for entry in report["phases"]),
        "",
        "pods",
        *(f"  {pod['name']:<22} {pod['phase']:<10} exit {pod['exit']}   {pod['address']}" for pod in report["pods"]),
        "",
        "result",
        *(f"  {line}" for line in report["table"].splitlines()),
        "",
        f"executed notebook: {executed}   (the whole run took {took:.1f} s)",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
