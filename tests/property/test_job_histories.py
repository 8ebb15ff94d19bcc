"""Whatever happens to a job: its status tells the truth, its moves are those of the table, and it comes to rest."""

from __future__ import annotations

from hypothesis import settings

from property.histories import TroubledHistory

TestHistories = TroubledHistory.TestCase
TestHistories.settings = settings(max_examples=settings().max_examples * 3 // 4)
