"""What every object store has to do, as checks that take a store and a namespace of their own.

A check is an async function; ``CHECKS`` holds all of them. They only use the ObjectStore protocol, so any store can be
held to them: parametrise a test over ``CHECKS`` and hand each a fresh store, or a shared one with a fresh namespace.
"""

from __future__ import annotations

from unit.store.conformance import deleting, patching, reading, watching, writing
from unit.store.conformance.objects import Check

__all__ = ["CHECKS"]

CHECKS: list[Check] = [
    value
    for module in (writing, patching, deleting, reading, watching)
    for name, value in vars(module).items()
    if getattr(value, "is_check", False)
]
