"""From a function and its arguments to what a pod can run: pickling by value, checked for size, packed into a Secret."""

from __future__ import annotations

import base64
import pickle
import secrets
import sys
import types
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcnb.client.functions.blame import culprit, largest
from vcnb.client.functions.pickling import Sources, by_value, modules_of
from vcnb.client.functions.wire import CHUNK, PAYLOAD_LIMIT, RESULT_LIMIT, size_text
from vcnb.errors import PayloadError
from vcnb.store.protocol import Obj

__all__ = ["LOADER", "Arguments", "Packed", "arguments_of", "pack", "pack_calls", "unpack"]

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of one call."""

LOADER = """\
import base64, os, pickle, zlib
text = "".join(os.environ.pop("VCNB_CALL_%d" % n) for n in range(int(os.environ.pop("VCNB_CALL_PARTS"))))
call = pickle.loads(zlib.decompress(base64.b64decode(text)))
space = {"__name__": "vcnb_supervise"}
exec(compile(call["supervise"], "vcnb_supervise", "exec"), space)
raise SystemExit(space["main"](call))
"""
"""What ``python -c`` runs in the pod: it takes the rest, with which the manifest is not burdened, out of the payload."""


@dataclass(frozen=True)
class Packed:
    """A payload as text in pieces, and the nonce that its answers carry."""

    nonce: str
    chunks: Sequence[str]

    def secret(self, namespace: str, name: str) -> dict[str, Any]:
        """The Secret; its name is made up from that of the job."""
        data = {f"part-{number}": base64.b64encode(text.encode()).decode() for number, text in enumerate(self.chunks)}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"generateName": f"{name}-", "namespace": namespace},
            "type": "Opaque",
            "immutable": True,
            "data": data,
        }

    def env(self, secret: str) -> dict[str, Any]:
        """The variables through which a container gets it."""
        pieces = {
            f"VCNB_CALL_{number}": {"secretKeyRef": {"name": secret, "key": f"part-{number}"}}
            for number in range(len(self.chunks))
        }
        return {**pieces, "VCNB_CALL_PARTS": str(len(self.chunks))}


def pack(program: str, what: str, **content: Any) -> Packed:
    """Pack a call of one of the programs in ``pod/``. Raises PayloadError when it is too large."""
    nonce = secrets.token_hex(8)
    call = {
        "nonce": nonce,
        "limit": RESULT_LIMIT,
        "supervise": _source("supervise"),
        "program": _source(program),
        **content,
    }
    body = zlib.compress(pickle.dumps(call, 4))
    if len(body) > PAYLOAD_LIMIT:
        raise PayloadError(
            f"{what} has {size_text(len(body))} after compression; {size_text(PAYLOAD_LIMIT)} fit into a job (a Secret of "
            "Kubernetes holds 1 MiB). Leave the data where pods can read it (a volume, an object store, the cache) and "
            "pass its path"
        )
    text = base64.b64encode(body).decode()
    return Packed(nonce, [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)])


def unpack(secret: Obj) -> dict[str, Any]:
    """What is in a payload's Secret."""
    data = secret["data"]
    text = "".join(base64.b64decode(data[f"part-{number}"]).decode() for number in range(len(data)))
    call: dict[str, Any] = pickle.loads(zlib.decompress(base64.b64decode(text)))  # noqa: S301 - our own payload
    return call


def _source(name: str) -> str:
    return (Path(__file__).parent / "pod" / f"{name}.py").read_text(encoding="utf-8")


def pack_calls(
    function: Callable[..., Any],
    items: Sequence[Arguments],
    *,
    modules: Sequence[types.ModuleType | str] = (),
    retries: int = 0,
    timeout: float | None = None,
) -> Packed:
    """Pack calls of a function. Raises PayloadError naming what cannot be pickled, or what is too large."""
    import cloudpickle

    sources = Sources()
    name = getattr(function, "__name__", type(function).__name__)
    with by_value(modules_of(function, modules)):
        body = _dumped(function, f"the function {name!r}", sources.dumps)
        pickled = [
            _dumped(item, f"the arguments of item {number}" if len(items) > 1 else "the arguments", sources.dumps)
            for number, item in enumerate(items)
        ]
        try:
            return pack(
                "call",
                f"the function {name!r} with its arguments",
                python=list(sys.version_info[:3]),
                cloudpickle=cloudpickle.__version__,
                shipped=_shipped(cloudpickle),
                function=body,
                items=pickled,
                lines=sources.lines(),
                retries=retries,
                timeout=timeout,
            )
        except PayloadError as error:
            raise PayloadError(f"{error}. {_heaviest(function, body, pickled, sources.dumps)}") from None


def arguments_of(call: dict[str, Any]) -> list[Arguments]:
    """The arguments of the items of an unpacked payload."""
    return [pickle.loads(item) for item in call["items"]]  # noqa: S301 - our own payload


def _dumped(value: Any, what: str, dumps: Callable[[Any], bytes]) -> bytes:
    try:
        return dumps(value)
    except Exception as error:
        way, found = culprit(value, dumps)
        where = f"{way} is" if way else "it is"
        article = "an" if type(found).__name__[0].lower() in "aeiou" else "a"
        raise PayloadError(
            f"{what} cannot be sent to the pods: {where} {article} {type(found).__name__}, which cannot be pickled "
            f"({error}). Make it inside the function, or pass what it is made from"
        ) from error


def _heaviest(function: Any, body: bytes, items: Sequence[bytes], dumps: Callable[[Any], bytes]) -> str:
    """What to look at first."""
    arguments = sum(map(len, items))
    if arguments > len(body):
        most = max(range(len(items)), key=lambda number: len(items[number]))
        return f"Before compression the arguments have {size_text(arguments)}, the largest are those of item {most}"
    label, size = largest(function, dumps)
    part = f"; most of it is {label} ({size_text(size)})" if label else ""
    return f"Before compression the function has {size_text(len(body))}{part}"


def _shipped(package: types.ModuleType) -> dict[str, bytes]:
    """Cloudpickle's own sources, for a pod that has none."""
    folder = Path(str(package.__file__)).parent
    return {path.name: zlib.compress(path.read_bytes()) for path in sorted(folder.glob("*.py"))}
