"""kill -9 of a process that keeps pages, at 100 random moments: afterwards every page is right or absent."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.integration
@pytest.mark.parametrize("seed", [1, 2])
def test_pages_survive_kills_at_random_moments(tmp_path, seed):
    """The page store's share of the issue's kill rule; 50 kills for each seed, on one directory."""
    program = Path(__file__).with_name("kill_pages.py")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "pages"), str(seed), "50"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.startswith("50 kills")
