"""Sandboxes, names and mounts need no root: the same for a user without any rights on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(90)]

PROGRAM = textwrap.dedent(
    """
    import os, vcnb
    names = "until getent hosts free-w-$((1 - VC_TASK_INDEX)).free; do sleep 0.05; done; id -u; "
    script = names + "cat /etc/volcano/w.host | wc -l; stat -L -c %a /root/.ssh/id_rsa; sleep 300"
    with vcnb.connect("memory://") as cluster:
        print(os.getuid(), cluster.status().runtime)
        task = vcnb.Task("w", replicas=2, image="debian", command=["bash", "-c", script])
        job = cluster.submit(vcnb.Job(name="free", tasks=[task], plugins={"svc": [], "ssh": [], "env": []}))
        job.wait("Running", timeout=30)
        while len(job.logs().splitlines()) < 8:
            pass
        for line in job.logs().splitlines():
            print(line)
    """
)


@pytest.mark.skipif(
    os.getuid() == 0 and shutil.which("bwrap") is None and not os.environ.get("VCNB_NO_SKIP"),
    reason="nothing to become another user with",
)
def test_a_user_without_rights_has_names_and_mounts(tmp_path):
    """Root becomes somebody without capabilities; anybody else stays who they are."""
    drop = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--dev-bind", "/", "/"]
    command = [*(drop if os.getuid() == 0 else ()), sys.executable, "-c", PROGRAM]

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=80, check=False, env={**os.environ, "HOME": str(tmp_path)}
    )

    assert done.returncode == 0, done.stderr
    who, *lines = done.stdout.splitlines()
    uid, runtime = who.split()
    assert (uid != "0", runtime) == (True, "sandbox")
    for index in range(2):
        said = [line.split(" | ")[1] for line in lines if line.startswith(f"free-w-{index} | ")]
        assert f"free-w-{1 - index}.free" in said[0]
        assert said[1:] == [uid, "1", "600"]
