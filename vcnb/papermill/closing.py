"""Called in a notebook's kernel when its last cell has run: what of its jobs is left.

It is called by name (see ``vcnb.client.functions.pod.notebook``), in the kernel's process, where the jobs were
submitted and where it is known which of them were looked at.
"""

from __future__ import annotations

import json

from vcnb.client.functions.attention import Attention, attentions

__all__ = ["close"]


def close(on_exit: str, linger: float) -> str:
    """JSON: failed jobs, flows and cache jobs that nobody looked at, ``[{"what", "name", "namespace", "phase", "why"}]``.

    Waits up to ``linger`` seconds for what has not ended; with ``on_exit="cancel"`` that is then ended.
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
            "what": each.word,
            "name": each.name,
            "namespace": each.namespace,
            "phase": phase,
            "why": await each.why(),
        }
        for each, phase in failed
    ]
    if on_exit == "cancel":
        for each in await attention.unfinished():
            await each.end()
    return found
