"""Numbers of a status: a float that changes is a change like any other."""

from __future__ import annotations

import pytest

from vcnb.store.values import shared


@pytest.mark.parametrize(("new", "old"), [(0.5, 0.2), (1.0, 1), (1, 1.0), (0.5, "0.5")])
def test_another_number_replaces_the_old_one(new, old):
    found = shared({"x": new}, {"x": old})

    assert found == {"x": new}
    assert type(found["x"]) is type(new)


def test_the_same_float_is_no_change():
    old = {"x": float("0.5")}

    assert shared({"x": float("0.5")}, old) is old
