"""Objects by namespace and name, listed in that order without sorting everything again.

Writing costs the same however many objects there are. The order is put right when somebody asks for it: new keys are
merged into the keys that are sorted already.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

from vcnb.store.protocol import Obj

__all__ = ["NamespacedTable", "Table"]

K = TypeVar("K", bound=Hashable)


class Table(Generic[K]):
    """A dict of objects whose values can be listed in the order of their keys."""

    __slots__ = ("_added", "_order", "_removed", "items")

    def __init__(self) -> None:
        self.items: dict[K, Obj] = {}
        self._order: list[K] = []
        self._added: list[K] = []
        self._removed = False

    def put(self, key: K, obj: Obj) -> None:
        """Put an object in, or in the place of the one that is there."""
        if key not in self.items:
            self._added.append(key)
        self.items[key] = obj

    def pop(self, key: K) -> Obj | None:
        """Take an object out; None when there is none."""
        found = self.items.pop(key, None)
        if found is not None:
            self._removed = True
        return found

    def values(self) -> list[Obj]:
        """The objects in the order of their keys, as a new list."""
        if self._removed or self._added:
            self._put_in_order()
        items = self.items
        return [items[key] for key in self._order]

    def _put_in_order(self) -> None:
        keys: Any = [*self._order, *self._added]
        if self._removed:  # a key that was removed and came back stands in both lists
            keys = dict.fromkeys(key for key in keys if key in self.items)
        self._order = sorted(keys)
        self._added = []
        self._removed = False


class NamespacedTable:
    """Objects by (namespace, name); cluster-scoped ones have the namespace ""."""

    __slots__ = ("_namespaces",)

    def __init__(self) -> None:
        self._namespaces: dict[str, Table[str]] = {}

    def get(self, namespace: str, name: str) -> Obj | None:
        """The object, or None."""
        table = self._namespaces.get(namespace)
        return None if table is None else table.items.get(name)

    def put(self, namespace: str, name: str, obj: Obj) -> None:
        """Put an object in, or in the place of the one that is there."""
        table = self._namespaces.get(namespace)
        if table is None:
            table = self._namespaces[namespace] = Table()
        table.put(name, obj)

    def pop(self, namespace: str, name: str) -> Obj | None:
        """Take an object out; None when there is none."""
        table = self._namespaces.get(namespace)
        if table is None:
            return None
        found = table.pop(name)
        if not table.items:
            del self._namespaces[namespace]
        return found

    def list(self, namespace: str | None = None) -> list[Obj]:
        """The objects of a namespace by name; of all (None) by namespace and name. A new list."""
        if namespace is not None:
            table = self._namespaces.get(namespace)
            return [] if table is None else table.values()
        found: list[Obj] = []
        for _, table in sorted(self._namespaces.items()):
            found += table.values()
        return found

    def __len__(self) -> int:
        return sum(len(table.items) for table in self._namespaces.values())
