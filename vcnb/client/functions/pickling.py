"""Pickling by value: what a notebook, ``__main__`` or a module that is not installed defines travels as a whole."""

from __future__ import annotations

import contextlib
import io
import linecache
import site
import sys
import sysconfig
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vcnb.errors import VcnbError

__all__ = ["Sources", "by_value", "modules_of"]

_LINES_LIMIT = 100_000
"""Characters of source that travel with a function, so that a traceback in a pod can show its lines."""


class Sources:
    """Pickles values, and remembers the files that the code in them comes from."""

    def __init__(self) -> None:
        import cloudpickle
        from cloudpickle import cloudpickle as inner

        self._files: set[str] = set()
        reduce_code = getattr(inner, "_code_reduce", None)
        files = self._files

        class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
            def reducer_override(self, obj: Any) -> Any:
                """Keep the file name of code, which cloudpickle forgets: tracebacks are of no use without."""
                if isinstance(obj, types.CodeType) and reduce_code is not None:
                    files.add(obj.co_filename)
                    make, arguments = reduce_code(obj)
                    return make, tuple(obj.co_filename if each == "<dynamic-code>" else each for each in arguments)
                return super().reducer_override(obj)

        self._pickler = Pickler

    def dumps(self, value: Any) -> bytes:
        """Pickle a value. Raises what pickling raises."""
        with io.BytesIO() as file:
            self._pickler(file).dump(value)
            return file.getvalue()

    def lines(self) -> dict[str, list[str]]:
        """The lines of the files, as far as there is room."""
        found: dict[str, list[str]] = {}
        room = _LINES_LIMIT
        for name in sorted(self._files):
            lines = [] if _installed(name) else linecache.getlines(name)
            size = sum(map(len, lines))
            if 0 < size <= room:
                found[name] = lines
                room -= size
        return found


def modules_of(function: Any, asked: Sequence[types.ModuleType | str]) -> list[types.ModuleType]:
    """Modules that travel along: those asked for, and the function's own unless it is an installed one."""
    found = [_module(each) for each in asked]
    own = sys.modules.get((getattr(function, "__module__", None) or "__main__").partition(".")[0])
    if own is not None and own.__name__ != "__main__" and not _installed(getattr(own, "__file__", None)):
        found.append(own)
    exact = sys.modules.get(getattr(function, "__module__", None) or "__main__")
    if exact is not None and exact.__name__ != "__main__" and not _installed(getattr(exact, "__file__", None)):
        found.append(exact)
    return found


def _module(asked: types.ModuleType | str) -> types.ModuleType:
    if isinstance(asked, types.ModuleType):
        return asked
    found = sys.modules.get(asked)
    if found is None:
        raise VcnbError(f"modules={asked!r} is not imported; import it first")
    return found


def _installed(file: str | None) -> bool:
    """Whether a file belongs to Python or to an installed package, which an image has or can be given."""
    if file is None:
        return True
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site.getsitepackages(), site.getusersitepackages()}
    resolved = Path(file).resolve()
    return any(resolved.is_relative_to(Path(path).resolve()) for path in paths if path)


@contextlib.contextmanager
def by_value(modules: Sequence[types.ModuleType]) -> Iterator[None]:
    """While this lasts, what is defined in these modules is pickled whole and not by name."""
    import cloudpickle

    before = set(cloudpickle.list_registry_pickle_by_value())
    fresh = {module.__name__: module for module in modules if module.__name__ not in before}
    for module in fresh.values():
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in fresh.values():
            cloudpickle.unregister_pickle_by_value(module)
