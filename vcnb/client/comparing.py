"""What would change: objects as they are written against those that are stored, both as YAML.

Compared is what would be stored, defaults filled in, without what the server sets; so a manifest that says nothing new is no
difference. Secret values are masked, and one that differs says so.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, overload

from vcnb.client.documents import Checked
from vcnb.client.functions.wire import NONCE, PAYLOAD
from vcnb.client.handles import exported
from vcnb.client.masking import MASK, masked
from vcnb.resources import kinds
from vcnb.resources.kinds import Kind, kind_of
from vcnb.store.protocol import Obj

if TYPE_CHECKING:
    from vcnb.client.cluster import Cluster
    from vcnb.resources.manifest import Document

__all__ = ["Change", "Diff", "compare"]

CHANGED: Final = f"{MASK} (changed)"
_CONTEXT: Final = 3
_MONO: Final = "font-family:var(--jp-code-font-family,monospace);font-size:12px;line-height:1.45;white-space:pre-wrap"
_SIGNS: Final = {
    "+": ("#2e7d32", "46,125,50"),
    "-": ("#c62828", "198,40,40"),
    "@": ("#757575", "117,117,117"),
}
"""Text colour and background of a line by its sign; both read on light and on dark, and the sign says the same."""


@dataclass(frozen=True)
class Change:
    """One object: ``old`` is the stored YAML (None: there is none), ``new`` what would be stored."""

    kind: str
    name: str
    namespace: str
    old: str | None
    new: str

    @property
    def changed(self) -> bool:
        """Whether anything would change."""
        return self.old != self.new

    @property
    def title(self) -> str:
        """The object, and what would become of it."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        became = "new" if self.old is None else "changed" if self.changed else "no change"
        return f"{self.kind} {where}: {became}"

    @property
    def lines(self) -> list[str]:
        """The unified diff."""
        where = f"{self.kind.lower()}/{self.name}"
        return list(
            difflib.unified_diff(
                (self.old or "").splitlines(),
                self.new.splitlines(),
                f"stored {where}" if self.old is not None else "nothing",
                f"written {where}",
                n=_CONTEXT,
                lineterm="",
            )
        )


class Diff(Sequence[Change]):
    """What would change, object by object. ``changed`` says whether anything does; ``str()`` is the unified diff."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._changes = tuple(changes)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self._changes[index]

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def changed(self) -> bool:
        """Whether any object would change or be new."""
        return any(change.changed for change in self)

    def __str__(self) -> str:
        return "\n".join(line for change in self for line in (change.title, *change.lines))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(_html(change) for change in self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def _html(change: Change) -> str:
    title = f'<div style="font-weight:600;margin-top:4px">{escape(change.title)}</div>'
    rows = "".join(_line(line) for line in change.lines[2:])
    return f'{title}<div style="{_MONO}">{rows}</div>' if rows else title


def _line(line: str) -> str:
    colour, background = _SIGNS.get(line[:1], ("", ""))
    style = f' style="color:{colour};background:rgba({background},0.12)"' if colour else ""
    return f"<div{style}>{escape(line) or '&nbsp;'}</div>"


async def compare(cluster: Cluster, documents: Sequence[Document], namespace: str | None) -> Diff:
    """What submitting these documents anew would change. Runs on the cluster's loop; raises InvalidObject."""
    checked = await cluster._check(documents, namespace)  # noqa: SLF001 - as a method of the cluster
    secrets = {item.object["metadata"].get("name"): item.object for item in checked if _is_secret(item.object)}
    return Diff([await _change(cluster, item, secrets) for item in checked if not _is_secret(item.object)])


def _is_secret(obj: Obj) -> bool:
    return kind_of(obj) == kinds.SECRET


async def _stored(cluster: Cluster, kind: Kind, meta: Mapping[str, Any]) -> Obj | None:
    if "name" not in meta:
        return None
    return await cluster._reader.find(kind, meta["name"], meta.get("namespace", ""))  # noqa: SLF001 - as above


async def _change(cluster: Cluster, item: Checked, secrets: Mapping[str, Obj]) -> Change:
    from vcnb.resources.manifest import dump

    meta = item.object["metadata"]
    stored = await _stored(cluster, kind_of(item.object), meta)
    new = _with_payload(_comparable(item.object, stored), secrets.get(_payload_of(item.object)))
    old = None
    if stored is not None:
        where = {"name": _payload_of(stored), "namespace": meta.get("namespace", "")}
        payload = await _stored(cluster, kinds.SECRET, where) if where["name"] else None
        old = _with_payload(_comparable(stored, item.object), payload)
    name = str(meta.get("name") or f"{meta.get('generateName', '')}…")
    shown = _marked(old, new, masked(new)) if old is not None else masked(new)
    return Change(
        str(item.object["kind"]),
        name,
        str(meta.get("namespace", "")),
        dump(masked(old)) if old is not None else None,
        dump(shown),
    )


def _payload_of(obj: Obj) -> str:
    """The name of the Secret with the function that it runs; empty when it runs none."""
    return str(obj["metadata"].get("annotations", {}).get(PAYLOAD, ""))


def _with_payload(obj: dict[str, Any], secret: Obj | None) -> dict[str, Any]:
    """Name the payload for what is in it: its real name is another at every submission."""
    name = _payload_of(obj)
    if not name or secret is None:
        return obj
    from vcnb.client.functions.payload import unpack

    content = {key: value for key, value in unpack(secret).items() if key != "nonce"}
    digest = hashlib.sha256(pickle.dumps(sorted(content.items()), 4)).hexdigest()[:12]
    text = json.dumps(obj).replace(json.dumps(name), json.dumps(f"payload {digest}"))
    found: dict[str, Any] = json.loads(text)
    found["metadata"]["annotations"].pop(NONCE, None)
    return found


def _comparable(obj: Obj, other: Obj | None) -> dict[str, Any]:
    """Without what the server and the controllers have put there and the other one does not speak of."""
    found = exported(obj)
    meta = found["metadata"]
    theirs: Mapping[str, Any] = (other or {}).get("metadata", {})
    for key in ("ownerReferences", "finalizers", "generateName"):
        if key not in theirs:
            meta.pop(key, None)
    return found


def _marked(old: Any, new: Any, shown: Any) -> Any:
    """``shown``, the masked form of ``new``, where a masked value that differs from the old one says so."""
    if shown == MASK and isinstance(new, str):
        return shown if old == new else CHANGED
    if isinstance(shown, Mapping) and isinstance(new, Mapping):
        before: Mapping[str, Any] = old if isinstance(old, Mapping) else {}
        return {key: _marked(before.get(key), new.get(key), value) for key, value in shown.items()}
    if isinstance(shown, Sequence) and not isinstance(shown, (str, bytes)):
        earlier = list(_items(old))
        pairs = zip(shown, new, strict=True)
        return [
            _marked(earlier[at] if at < len(earlier) else None, each, value) for at, (value, each) in enumerate(pairs)
        ]
    return shown


def _items(value: Any) -> Iterator[Any]:
    return iter(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else iter(())
