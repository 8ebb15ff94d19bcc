"""Called in a notebook's kernel when its last cell has run: what of its jobs is left.

It is called by name (see ``vcnb.client.functions.pod.notebook``), in the kernel's process, where the jobs were
submitted and where it is known which of them were looked at.
"""

from __future__ import annotations

import contextlib
import json

from vcnb.client.functions.attention import Attention, attentions
from vcnb.errors import VcnbError

__all__ = ["close"]


def close(on_exit: str, linger: float) -> str:
    """JSON: the failed jobs that nobody looked at, ``[{"name", "namespace", "phase", "why"}]``.

    Waits up to ``linger`` seconds for jobs that have not ended; with ``on_exit="cancel"`` those are then terminated.
    """
    found: list[dict[str, str]] = []
    for attention in attentions():
        bridge = attention.cluster._bridge  # noqa: SLF001 - the engine's own part in the kernel
        found += bridge.run(_close(attention, on_exit, linger))
    return json.dumps(found)


async def _close(attention: Attention, on_exit: str, linger: float) -> list[dict[str, str]]:
    failed = await attention.unseen(linger)
    found = [
        {
            "name": handle.name,
            "namespace": handle.namespace,
            "phase": str(handle._seen["status"]["state"]["phase"]),  # noqa: SLF001
            "why": (await handle._why()).partition("\n")[0],  # noqa: SLF001
        }
        for handle in failed
    ]
    if on_exit == "cancel":
        for handle in await attention.unfinished():
            with contextlib.suppress(VcnbError):
                await handle._terminate()  # noqa: SLF001
    return found
