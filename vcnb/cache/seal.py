"""Storage options may hold secrets, and a job record lies in a store: in it they are sealed.

A sealed mapping has one member, ``sealed``: the options as JSON under AES-SIV with the cluster's key. The same options give
the same text, so that two submissions can be compared without opening them. The key is a file that only its owner may read
(mode 0600), or a random one in memory for a cluster that keeps nothing. Coordinators that share a job store share the key
file.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vcnb.cache.protocol import UnderStore, UnderStores
from vcnb.errors import InvalidObject, Problem, VcnbError

__all__ = ["Seal", "SealedStores", "is_sealed"]

_SEALED: Final = "sealed"
_KEY_BYTES: Final = 64
_PURPOSE: Final = [b"vcnb storage options 1"]


def is_sealed(options: Mapping[str, Any]) -> bool:
    """Whether a mapping is sealed storage options."""
    return set(options) == {_SEALED}


class Seal:
    """Seals and opens storage options. Nothing of the key or of what it opens is ever in a message."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key if key is not None else secrets.token_bytes(_KEY_BYTES)

    @classmethod
    def of_file(cls, path: Path) -> Seal:
        """The seal of a key file, which is made when it is missing. Raises VcnbError for a file that is no key."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make(path)
        key = path.read_bytes()
        if len(key) != _KEY_BYTES:
            raise VcnbError(f"{path} is not a key of the cache: it has {len(key)} bytes, not {_KEY_BYTES}")
        return cls(key)

    def seal(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as they may lie in a record; what is empty or sealed stays as it is.

        Raises InvalidObject for what has no JSON: open files, sessions and other live things cannot be kept.
        """
        if not options or is_sealed(options):
            return dict(options)
        try:
            text = json.dumps(options, sort_keys=True).encode()
        except (TypeError, ValueError) as error:
            raise InvalidObject(
                [
                    Problem(
                        "storage_options",
                        None,
                        f"must be plain texts, numbers and mappings, because a job outlives this process: {error}",
                    )
                ],
                "the cache job",
            ) from None
        return {_SEALED: base64.b64encode(self._cipher().encrypt(text, _PURPOSE)).decode()}

    def open(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of ``seal``. Raises ValueError when another key sealed it."""
        if not is_sealed(options):
            return dict(options)
        from cryptography.exceptions import InvalidTag

        try:
            text = self._cipher().decrypt(base64.b64decode(str(options[_SEALED])), _PURPOSE)
        except (InvalidTag, ValueError):
            raise ValueError(
                "the storage options of this job were sealed with another key; coordinators and workers that share jobs "
                "need the same token (VCNB_CACHE_TOKEN), or the same key file"
            ) from None
        opened: dict[str, Any] = json.loads(text)
        return opened

    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        return AESSIV(self._key)

    def __repr__(self) -> str:
        return "<Seal>"


def _make(path: Path) -> None:
    """A new key file, whole or not at all; one that somebody else makes at the same time is kept."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


class SealedStores:
    """Sources that open sealed storage options on their way to the under-store."""

    def __init__(self, stores: UnderStores, seal: Seal) -> None:
        self._stores = stores
        self._seal = seal

    def open(self, path: str, storage_options: Mapping[str, Any]) -> UnderStore:
        """As ``UnderStores.open``. Raises ValueError for options that cannot be opened."""
        return self._stores.open(path, self._seal.open(storage_options))

    async def close(self) -> None:
        """Close the sources behind, if they hold anything."""
        close = getattr(self._stores, "close", None)
        if close is not None:
            await close()
