"""MessagePack for values whose texts may be names that are no Unicode.

A file name of another encoding comes from the operating system as a text with lone surrogates, which UTF-8 cannot hold. Such
a text is stored as its bytes in hexadecimal behind a mark; all others as they are, at full speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

__all__ = ["pack", "unpack"]

T = TypeVar("T")
_MARK: Final = "\0raw:"
_MARKED: Final = _MARK.encode()
_encoder = msgspec.msgpack.Encoder()


def pack(value: Any) -> bytes:
    """A value as MessagePack."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_texts(msgspec.to_builtins(value), _marked))


def unpack(data: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    """The inverse of ``pack``. Raises msgspec.DecodeError for what is no value of the decoder's type."""
    if _MARKED not in data:
        return decoder.decode(data)
    plain = _texts(msgspec.msgpack.decode(data), _unmarked)
    whole: T = msgspec.convert(plain, decoder.type)
    return whole


def _marked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _MARK + text.encode("utf-8", "surrogatepass").hex()
    return text


def _unmarked(text: str) -> str:
    if not text.startswith(_MARK):
        return text
    return bytes.fromhex(text.removeprefix(_MARK)).decode("utf-8", "surrogatepass")


def _texts(value: Any, change: Callable[[str], str]) -> Any:
    """Plain data with all of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key) if isinstance(key, str) else key: _texts(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(each, change) for each in value]
    return value
