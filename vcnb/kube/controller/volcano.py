"""Whether Volcano's own controllers are at work: two controllers of one kind would work against each other."""

from __future__ import annotations

from typing import Final

from vcnb.clock import Clock, parse_time
from vcnb.errors import Forbidden, NotFound, VcnbError
from vcnb.resources.kinds import LEASE
from vcnb.store.protocol import ObjectStore

__all__ = ["VOLCANO_LEASE", "VOLCANO_NAMESPACE", "VolcanoActive", "volcano_holder"]

VOLCANO_NAMESPACE: Final = "volcano-system"
VOLCANO_LEASE: Final = "vc-controller-manager"
"""The Lease of Volcano's controller manager, as its own options have it."""

SKEW: Final = 30.0
"""Seconds that the clocks of two machines may differ."""


class VolcanoActive(VcnbError):
    """Volcano's controllers run on this cluster already."""


async def volcano_holder(
    store: ObjectStore, clock: Clock, *, namespace: str = VOLCANO_NAMESPACE, name: str = VOLCANO_LEASE
) -> str | None:
    """Who leads Volcano's controllers, None when nobody does (any more).

    A holder that did not give up its Lease counts until it is over, and some seconds more. Raises VcnbError when the
    Lease may not be read, for then nobody can tell.
    """
    try:
        lease = await store.get(LEASE, name, namespace)
    except NotFound:
        return None
    except Forbidden as error:
        raise VcnbError(
            f"whether Volcano's controllers run here cannot be told: the lease {namespace}/{name} may not be read"
            f" ({error}); ask for get on leases there, or say that they do not run"
        ) from None
    spec = lease.get("spec") or {}
    holder, renewed = str(spec.get("holderIdentity") or ""), spec.get("renewTime")
    if not holder or not renewed:
        return None
    over = parse_time(str(renewed)) + float(spec.get("leaseDurationSeconds") or 15) + SKEW
    return holder if clock.time() < over else None
