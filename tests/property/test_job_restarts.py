"""Controllers may be restarted, and may die between any two writes: the job comes to the same."""

from __future__ import annotations

from hypothesis import settings

from property.twins import Twins

TestRestarts = Twins.TestCase
TestRestarts.settings = settings(max_examples=settings().max_examples // 4)
