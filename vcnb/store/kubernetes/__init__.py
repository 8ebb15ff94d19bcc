"""The object store on a Kubernetes API server.

    store = await open_store("my-context", clock=RealClock())
    jobs = await store.list(JOB, "default")

Any ``vcnb.store.informer.Informer`` works on it. Its own list and watch are plain JSON objects all the way: the official
client is used to find and prove who we are (kubeconfig contexts, exec plugins, OIDC, a pod's service account), and its
informer is not, as it cannot watch custom resources. This module is loaded only when a Kubernetes cluster is asked for.
"""

from __future__ import annotations

from vcnb.clock import Clock
from vcnb.store.kubernetes.calls import Call
from vcnb.store.kubernetes.connection import Connection, Timeouts
from vcnb.store.kubernetes.store import KubernetesStore

__all__ = ["Call", "Connection", "KubernetesStore", "Timeouts", "open_store"]


async def open_store(
    context: str | None = None,
    *,
    kubeconfig: str | None = None,
    clock: Clock,
    namespace: str | None = None,
    timeouts: Timeouts | None = None,
    resync: float = 1800.0,
) -> KubernetesStore:
    """The store of a context of a kubeconfig (None: the current one; without a kubeconfig, this pod's service account).

    ``kubeconfig`` is a path, by default that of ``KUBECONFIG`` or ``~/.kube/config``; ``namespace`` is for calls that name
    none, by default the context's. ``resync``: seconds after which a watch asks its reader to list again (0: never).

    The server is asked for its version first. Raises Unreachable, and Unauthorized when the credentials are not accepted.
    """
    connection = await Connection.open(context, kubeconfig, clock, timeouts)
    try:
        await connection.version()
    except BaseException:
        await connection.close()
        raise
    return KubernetesStore(connection, clock, namespace=namespace or "", resync=resync)
