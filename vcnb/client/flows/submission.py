"""Submitting flows that were put together in Python: templates are theirs, are replaced with them, and go with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vcnb.client.applying import with_last_applied
from vcnb.client.documents import Checked, Source, read
from vcnb.client.flows.builder import Flow
from vcnb.client.flows.parts import FLOW_LABEL, keeper_of
from vcnb.errors import AlreadyExists
from vcnb.resources import kinds
from vcnb.resources.kinds import kind_of
from vcnb.resources.manifest import Document
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster
    from vcnb.client.handles import Handle

__all__ = ["check_documents", "has_flow", "submit_documents", "submit_flows"]


def has_flow(source: Any) -> bool:
    """Whether a ``vcnb.Flow`` is among what is submitted."""
    return isinstance(source, Flow) or (isinstance(source, (list, tuple)) and any(isinstance(e, Flow) for e in source))


async def submit_flows(cluster: Cluster, source: Source | Flow | Sequence[Any], namespace: str | None) -> Any:
    """Create what is there, each flow with its templates and payloads. Gives a handle for everything but those.

    Everything is checked before anything is stored. Raises InvalidObject with the names of nodes, AlreadyExists.
    """
    sources = [source] if isinstance(source, Flow) or not isinstance(source, (list, tuple)) else list(source)
    documents = [document for each in sources for document in documents_of(each)]
    checked = await cluster._check(documents, namespace)  # noqa: SLF001 - submitting is a part of the cluster
    for item in checked:
        if not await _replaces(cluster, item.object):
            await cluster._refuse_existing(item)  # noqa: SLF001
    await cluster._engine.submitting(checked)  # noqa: SLF001
    handles: list[Handle] = []
    belongings: list[Obj] = []
    for item in checked:
        stored = await _store(cluster, item)
        if item.object["metadata"].get("labels", {}).get(FLOW_LABEL):
            belongings.append(stored)
            continue
        if kind_of(stored) == kinds.JOBFLOW:
            await _adopt(cluster, stored, belongings)
            belongings = []
        handles.append(cluster._handle(stored, item.warnings))  # noqa: SLF001
        cluster._attention.submitted(handles[-1])  # noqa: SLF001
    return handles[0] if len(handles) == 1 else handles


async def check_documents(cluster: Cluster, documents: Sequence[Document], namespace: str | None) -> list[Checked]:
    """Documents as ``submit_documents`` takes them, checked; nothing is stored. Raises InvalidObject."""
    return await cluster._check(documents, namespace, replace=True)  # noqa: SLF001


async def submit_documents(cluster: Cluster, documents: Sequence[Document], namespace: str | None) -> list[Handle]:
    """Create the flows among these documents; everything else, templates above all, is created or changed.

    So a cell with its templates and its flow can be run again. Raises InvalidObject, AlreadyExists for a flow.
    """
    checked = await check_documents(cluster, documents, namespace)
    for item in checked:
        if kind_of(item.object) == kinds.JOBFLOW:
            await cluster._refuse_existing(item)  # noqa: SLF001
    await cluster._engine.submitting(checked)  # noqa: SLF001
    store, handles = cluster._store, []  # noqa: SLF001
    for document, item in zip(documents, checked, strict=True):
        if item.old is not None:
            stored = await cluster._replace(document, item, namespace)
        elif kind_of(item.object) == kinds.JOBFLOW:
            stored = await store.create(item.object)
        else:
            where = {key: item.object["metadata"][key] for key in ("namespace",) if key in item.object["metadata"]}
            written = {**document.object, "metadata": {**document.object["metadata"], **where}}
            stored = await store.create(with_last_applied(item.object, written))
        handles.append(cluster._handle(stored, item.warnings))  # noqa: SLF001
        if item.old is None:
            cluster._attention.submitted(handles[-1])  # noqa: SLF001
    return handles


def documents_of(source: Any) -> Iterable[Document]:
    """The documents of a flow, which know their nodes, or of any other source; a document is itself."""
    if isinstance(source, Document):
        return [source]
    return source.parts() if isinstance(source, Flow) else read(source)


async def _existing(cluster: Cluster, obj: Obj) -> Obj | None:
    meta = obj["metadata"]
    return await cluster._reader.find(kind_of(obj), str(meta.get("name", "")), meta.get("namespace", ""))  # noqa: SLF001


async def _replaces(cluster: Cluster, obj: Obj) -> bool:
    """Whether the object takes the place of one that an earlier flow of this name has left."""
    flow = obj["metadata"].get("labels", {}).get(FLOW_LABEL)
    there = await _existing(cluster, obj)
    if not flow or there is None:
        return False
    if there["metadata"].get("labels", {}).get(FLOW_LABEL) == flow:
        return True
    raise AlreadyExists(
        f"{kind_of(obj).singular} {obj['metadata']['name']!r}, which flow {flow!r} brings along, exists already and belongs to "
        "something else; give the flow or the template another name"
    )


async def _store(cluster: Cluster, item: Checked) -> Obj:
    store, there = cluster._store, await _existing(cluster, item.object)  # noqa: SLF001
    if there is None:
        return await store.create(item.object)
    meta = {**item.object["metadata"], "uid": there["metadata"]["uid"]}
    return await store.update({**item.object, "metadata": meta})


async def _adopt(cluster: Cluster, flow: Obj, belongings: Sequence[Obj]) -> None:
    """The flow owns its templates and payloads: they go when it goes."""
    owner = {**keeper_of(flow), "uid": flow["metadata"]["uid"], "blockOwnerDeletion": True}
    for obj in belongings:
        meta = obj["metadata"]
        change = {"metadata": {"ownerReferences": [owner]}}
        await cluster._store.patch(kind_of(obj), meta["name"], meta["namespace"], change)  # noqa: SLF001
