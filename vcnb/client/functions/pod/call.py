"""Runs one call of a function in a pod. Needs Python; cloudpickle comes along where the pod has none."""

from __future__ import annotations

import asyncio
import inspect
import linecache
import os
import pickle
import sys
import tempfile
import traceback
import zlib

if False:  # only for type checkers
    from typing import Any, Dict, Optional

LONGEST = 64_000


def run(call: Dict[str, Any], index: int, frames: Any) -> Dict[str, Any]:
    """The outcome of the call with this index: ``done`` with its pickled value, or ``failed`` and why."""
    del frames
    skew = _skew(call)
    if skew:
        return _failed("skew", "VersionSkew", skew, final=True)
    for name, lines in call["lines"].items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    try:
        function = pickle.loads(call["function"])
        items = call["items"]
        args, kwargs = pickle.loads(items[index] if len(items) > 1 else items[0])
    except ImportError as error:
        return _failed("import", "ModuleNotFoundError", _missing(error), _text(error), final=True)
    except BaseException as error:
        return _failed("unreadable", type(error).__name__, "the call cannot be read: %s" % error, _text(error), final=True)
    try:
        value = function(*args, **kwargs)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
    except Exception as error:
        return _raised(error)
    except SystemExit as error:
        return _failed("exit", "SystemExit", "it left with sys.exit(%r)" % (error.code,), _text(error))
    except BaseException as error:
        return _failed("raised", type(error).__name__, str(error), _text(error))
    return _returned(value)


def _skew(call: Dict[str, Any]) -> str:
    """Why this pod cannot run what was sent; empty when it can. Makes cloudpickle importable."""
    theirs, ours = tuple(call["python"][:2]), sys.version_info[:2]
    if theirs != ours:
        return (
            "the call was sent by Python %d.%d and this pod has Python %d.%d; functions travel as bytecode, which only the "
            "same version reads: choose an image with Python %d.%d (image=...)" % (theirs + ours + theirs)
        )
    try:
        import cloudpickle
    except ImportError:
        folder = tempfile.mkdtemp(prefix="vcnb-")
        os.mkdir(os.path.join(folder, "cloudpickle"))
        for name, source in call["shipped"].items():
            with open(os.path.join(folder, "cloudpickle", name), "wb") as file:
                file.write(zlib.decompress(source))
        sys.path.append(folder)
        return ""
    version = str(getattr(cloudpickle, "__version__", "?"))
    if version.split(".")[0] != call["cloudpickle"].split(".")[0]:
        return (
            "the call was sent with cloudpickle %s and this pod has cloudpickle %s, which does not read it: install "
            "cloudpickle==%s in the image, or none (then the sender's comes along)"
            % (call["cloudpickle"], version, call["cloudpickle"])
        )
    return ""


def _missing(error: ImportError) -> str:
    name = error.name or str(error)
    return (
        "this pod has no module %r, which the function or its arguments need; use an image that has it (image=...), or "
        "send it along (modules=[...])" % name
    )


def _returned(value: Any) -> Dict[str, Any]:
    import cloudpickle

    try:
        return {"state": "done", "value": cloudpickle.dumps(value)}
    except Exception as error:
        message = "it returned a %s, which cannot be pickled: %s" % (type(value).__name__, error)
        return _failed("unpicklable", type(error).__name__, message, final=True)


def _raised(error: Exception) -> Dict[str, Any]:
    import cloudpickle

    pickled: Optional[bytes]
    text = _text(error)
    try:
        pickled = cloudpickle.dumps(error.with_traceback(None))
    except Exception:
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


def _failed(reason: str, kind: str, message: str, text: str = "", final: bool = False) -> Dict[str, Any]:
    return {
        "state": "failed",
        "reason": reason,
        "kind": kind,
        "message": message[:LONGEST],
        "traceback": text,
        "error": None,
        "final": final,
    }
