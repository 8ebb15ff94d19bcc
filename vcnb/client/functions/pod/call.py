"""Runs one call of a function in a pod. Needs Python; cloudpickle comes along where the pod has none."""

from __future__ import annotations

import asyncio
import inspect
import linecache
import pickle
import sys
import tempfile
import traceback
import zlib
from pathlib import Path

TYPE_CHECKING = False  # no import: it takes time in every pod
if TYPE_CHECKING:
    from typing import Any

LONGEST = 64_000


def run(call: dict[str, Any], index: int, frames: Any) -> dict[str, Any]:
    """The outcome of the call with this index: ``done`` with its pickled value, or ``failed`` and why."""
    del frames
    skew = _skew(call)
    if skew:
        return _failed("skew", "VersionSkew", skew, final=True)
    for name, lines in call["lines"].items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    try:
        function = pickle.loads(call["function"])  # noqa: S301 - the pod is there to run what it is sent
        items = call["items"]
        args, kwargs = pickle.loads(items[index] if len(items) > 1 else items[0])  # noqa: S301 - as above
    except ImportError as error:
        return _failed("import", "ModuleNotFoundError", _missing(error), _text(error), final=True)
    except BaseException as error:  # noqa: BLE001 - whatever it raises is told
        return _failed(
            "unreadable", type(error).__name__, f"the call cannot be read: {error}", _text(error), final=True
        )
    try:
        value = function(*args, **kwargs)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
    except Exception as error:  # noqa: BLE001 - whatever it raises is told
        return _raised(error)
    except SystemExit as error:
        return _failed("exit", "SystemExit", f"it left with sys.exit({error.code!r})", _text(error))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is told
        return _failed("raised", type(error).__name__, str(error), _text(error))
    return _returned(value)


def _skew(call: dict[str, Any]) -> str:
    """Why this pod cannot run what was sent; empty when it can. Makes cloudpickle importable."""
    theirs, ours = tuple(call["python"][:2]), sys.version_info[:2]
    if theirs != ours:
        return (
            f"the call was sent by Python {_dotted(theirs)} and this pod has Python {_dotted(ours)}; functions travel as "
            f"bytecode, which only the same version reads: choose an image with Python {_dotted(theirs)} (image=...)"
        )
    try:
        import cloudpickle
    except ImportError:
        folder = Path(tempfile.mkdtemp(prefix="vcnb-"))
        (folder / "cloudpickle").mkdir()
        for name, source in call["shipped"].items():
            (folder / "cloudpickle" / name).write_bytes(zlib.decompress(source))
        sys.path.append(str(folder))
        return ""
    version = str(getattr(cloudpickle, "__version__", "?"))
    if version.split(".", 1)[0] != call["cloudpickle"].split(".", 1)[0]:
        return (
            f"the call was sent with cloudpickle {call['cloudpickle']} and this pod has cloudpickle {version}, which does "
            f"not read it: install cloudpickle=={call['cloudpickle']} in the image, or none (the sender's comes along)"
        )
    return ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _missing(error: ImportError) -> str:
    name = error.name or str(error)
    return (
        f"this pod has no module {name!r}, which the function or its arguments need; use an image that has it (image=...), or "
        "send it along (modules=[...])"
    )


def _returned(value: Any) -> dict[str, Any]:
    import cloudpickle

    try:
        return {"state": "done", "value": cloudpickle.dumps(value)}
    except Exception as error:  # noqa: BLE001 - whatever it raises is told
        message = f"it returned a {type(value).__name__}, which cannot be pickled: {error}"
        return _failed("unpicklable", type(error).__name__, message, final=True)


def _raised(error: Exception) -> dict[str, Any]:
    import cloudpickle

    pickled: bytes | None
    text = _text(error)
    try:
        pickled = cloudpickle.dumps(error.with_traceback(None))
    except Exception:  # noqa: BLE001 - as above
        pickled = None
    outcome = _failed("raised", type(error).__name__, str(error), text)
    outcome["error"] = pickled if pickled is None or len(pickled) < LONGEST * 8 else None
    return outcome


def _text(error: BaseException) -> str:
    """The traceback as text, without our own frame; also printed, for whoever reads the log."""
    where = error.__traceback__.tb_next if error.__traceback__ is not None else None
    text = "".join(traceback.format_exception(type(error), error, where))
    sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + "\n...\n" + text[-LONGEST // 2 :]


def _failed(reason: str, kind: str, message: str, text: str = "", final: bool = False) -> dict[str, Any]:
    return {
        "state": "failed",
        "reason": reason,
        "kind": kind,
        "message": message[:LONGEST],
        "traceback": text,
        "error": None,
        "final": final,
    }
