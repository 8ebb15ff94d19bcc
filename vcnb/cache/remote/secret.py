"""The token that workers, coordinators and clients of one cache share. Whoever has it may do everything with the cache.

It comes from a file that only its owner may read, or from the environment, and goes over HTTP as
``Authorization: Bearer ...``. The key by which storage options are sealed in job records is derived from it, so that there
is one secret to hand out.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vcnb.cache.seal import Seal
from vcnb.errors import VcnbError

__all__ = ["TOKEN", "TOKEN_FILE", "Token"]

TOKEN: Final = "VCNB_CACHE_TOKEN"  # noqa: S105 the name of a variable
"""Environment variable with the token itself."""

TOKEN_FILE: Final = "VCNB_CACHE_TOKEN_FILE"  # noqa: S105 the name of a variable
"""Environment variable with the name of a file that holds it."""

_SHORTEST: Final = 16
_PURPOSE: Final = b"vcnb storage options of a shared cache 1"
HOW: Final = "(umask 077; head -c 32 /dev/urandom | base64 > FILE)"


class Token:
    """A shared secret. Nothing of it is ever in a message or a repr."""

    def __init__(self, text: str, *, source: str = "the token") -> None:
        text = text.strip()
        if len(text) < _SHORTEST or not text.isascii() or not text.isprintable() or " " in text:
            raise VcnbError(
                f"{source} must hold one line of at least {_SHORTEST} ASCII characters without blanks; make one with {HOW}"
            )
        self._text = text

    @classmethod
    def of_file(cls, path: Path) -> Token:
        """The token in a file. Raises VcnbError when there is none, or when others than the owner may read it."""
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise VcnbError(f"the token file {path} can be read by others than its owner: chmod 600 {path}")
            text = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no ASCII text"
            raise VcnbError(f"the token file {path} cannot be read: {reason}; make one with {HOW}") from None
        return cls(text, source=f"the token file {path}")

    @classmethod
    def find(cls, path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Token | None:
        """The token of a file, else of the environment; None when nothing names one."""
        if path is not None:
            return cls.of_file(path)
        if environment.get(TOKEN):
            return cls(environment[TOKEN], source=f"the environment variable {TOKEN}")
        if environment.get(TOKEN_FILE):
            return cls.of_file(Path(environment[TOKEN_FILE]).expanduser())
        return None

    @classmethod
    def need(cls, path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Token:
        """As ``find``. Raises VcnbError when nothing names a token."""
        found = cls.find(path, environment)
        if found is None:
            raise VcnbError(
                "workers, coordinators and clients of one cache share a token, and none was given: use --token-file FILE, "
                f"or set {TOKEN_FILE} or {TOKEN}; make one with {HOW}"
            )
        return found

    @property
    def headers(self) -> dict[str, str]:
        """What a request carries."""
        return {"Authorization": f"Bearer {self._text}"}

    def matches(self, authorization: str | None) -> bool:
        """Whether the ``Authorization`` header of a request is right, in a time that tells nothing of the token."""
        expected = f"Bearer {self._text}".encode()
        return hmac.compare_digest((authorization or "").encode("utf-8", "surrogateescape"), expected)

    def seal(self) -> Seal:
        """Seals storage options with a key that is derived from the token."""
        return Seal(hmac.digest(self._text.encode(), _PURPOSE, hashlib.sha512))

    def __repr__(self) -> str:
        return "<Token>"
