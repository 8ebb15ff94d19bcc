"""When a client's own controllers have begun."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from vcnb.client.kube.running import _another_leads
from vcnb.kube.controller.process import Stage


@pytest.mark.parametrize(
    ("stage", "holder", "another"),
    [
        (Stage.STANDBY, "other", True),
        (Stage.STANDBY, "", False),
        (Stage.STANDBY, "me", False),
        (Stage.SYNCING, "me", False),
        (Stage.LEADING, "me", False),
    ],
)
def test_a_lease_that_was_just_won_is_not_another_ones(stage, holder, another):
    process = SimpleNamespace(stage=stage, election=SimpleNamespace(holder=holder, identity="me"))

    assert _another_leads(process) is another
