"""The stores that the conformance suite is held against."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("unit.store.conformance")
