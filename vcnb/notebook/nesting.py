"""``vcnb.nest()``: let a cell call ``asyncio.run(...)`` inside the kernel's running loop, only when asked and only where safe.

vcnb itself never needs it. The package ``nest_asyncio`` silently drops queued cells on ipykernel 7 and later (its patch enters
a context that is already entered; nest-asyncio2 issue 4), so there its maintained successor is used, or nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from vcnb.errors import VcnbError

__all__ = ["nest"]


def nest() -> str:
    """Patch asyncio for nested loops; returns what was done. Raises VcnbError where it would break the kernel."""
    if find_spec("nest_asyncio2") is not None:
        import_module("nest_asyncio2").apply()
        return "asyncio.run() works in cells now (nest_asyncio2)"
    major = _ipykernel_major()
    if major >= 7:
        raise VcnbError(
            f"nest_asyncio on ipykernel {major} silently drops cells; pip install nest-asyncio2, or write await in the cell"
        )
    import_module("nest_asyncio").apply()
    return "asyncio.run() works in cells now (nest_asyncio)"


def _ipykernel_major() -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return int(version("ipykernel").partition(".")[0])
    except (PackageNotFoundError, ValueError):
        return 0
