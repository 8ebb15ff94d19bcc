"""Nodes that run a function or a notebook of this notebook: their payload travels in a Secret, as of every such job."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vcnb.client.flows.expressions import exact, has_expressions, only_parameter
from vcnb.client.flows.work import Made
from vcnb.client.functions.function import RemoteFunction, plain
from vcnb.client.functions.options import RunOptions
from vcnb.client.functions.payload import Packed, pack_calls
from vcnb.client.functions.wire import OUTPUT
from vcnb.controllers.flow.convert import template_from_job
from vcnb.errors import VcnbError
from vcnb.resources.builders import Job

if TYPE_CHECKING:
    from vcnb.client.flows.builder import Flow

__all__ = ["Function", "Notebook"]

_ARGUMENT: Final = "VCNB_ARGUMENT_"
_OUTPUT_LIMIT: Final = 4096
"""Bytes of a termination message; what a function returns becomes outputs when it fits."""


@dataclasses.dataclass(frozen=True)
class Function:
    """A call of a function. Arguments may be ``${{ expressions }}``; the node's job computes them when it runs."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: RunOptions

    @classmethod
    def of(cls, function: Callable[..., Any], args: Any, options: Mapping[str, Any], node: str) -> Function:
        """Check the arguments against the function's parameters. Raises VcnbError, naming the node."""
        base = function._options if isinstance(function, RemoteFunction) else RunOptions()  # noqa: SLF001
        named: Mapping[str, Any] = args if isinstance(args, Mapping) else {}
        listed: Sequence[Any] = () if isinstance(args, Mapping) or args is None else tuple(args)
        inner = plain(function)
        try:
            inspect.signature(inner).bind(*listed, **named)
        except TypeError as error:
            name = getattr(inner, "__name__", "the function")
            raise VcnbError(
                f"node {node!r}: {name}{inspect.signature(inner)}: {error}; give args={{...}}, "
                'e.g. args={"lr": "${{ params.lr }}"}'
            ) from None
        except ValueError:  # a builtin that does not tell
            pass
        return cls(inner, listed, named, base.replace(options))

    def make(self, flow: Flow, node: str) -> Made:
        env: dict[str, str] = {}
        args = [_given(value, env) for value in self.args]
        kwargs = {key: _given(value, env) for key, value in self.kwargs.items()}
        options = dataclasses.replace(self.options, env={**self.options.env, **env}, namespace=flow.namespace)
        packed = pack_calls(
            _in_pod(self.function, args, kwargs),
            [((), {})],
            modules=self.options.modules,
            retries=0 if options.gang else options.retries,
            timeout=options.timeout,
        )
        name = str(getattr(self.function, "__name__", node))
        outputs: dict[str, Any] = {"value": {}}
        return _made(flow, node, options, packed, ("call", "call", name, options.replicas), outputs)


def _given(value: Any, env: dict[str, str]) -> tuple[str, Any]:
    """How an argument travels: ``("is", value)``, or ``("env", name)`` of the variable that will have it."""
    if not isinstance(value, str) or not has_expressions(value):
        return ("is", value)
    name = f"{_ARGUMENT}{len(env)}"
    env[name] = exact(value)
    return ("json" if env[name] != value else "env", name)


def _in_pod(
    function: Callable[..., Any], args: Sequence[tuple[str, Any]], kwargs: Mapping[str, tuple[str, Any]]
) -> Callable[[], Any]:
    """The call as a function without arguments. It needs nothing of vcnb: as a function in a function it goes by value."""
    limit = _OUTPUT_LIMIT

    def call() -> Any:
        import json
        import os

        def value_of(given: Any) -> Any:
            how, what = given
            if how == "json":
                return json.loads(os.environ[what])[0]
            return os.environ[what] if how == "env" else what

        value = function(*map(value_of, args), **{key: value_of(given) for key, given in kwargs.items()})
        try:
            text = json.dumps(value if isinstance(value, dict) else {"value": value})
        except (TypeError, ValueError):
            return value  # no JSON: it is a result, but no output
        if len(text.encode()) <= limit:
            place = os.environ.get("VC_OUTPUT_FILE") or os.environ.get("VCNB_TERMINATION_LOG", "/dev/termination-log")
            try:
                with open(place, "w", encoding="utf-8") as file:  # noqa: PTH123 - by value, without imports
                    file.write(text)
            except OSError:
                pass
        return value

    call.__name__ = str(getattr(function, "__name__", "call"))
    call.__module__ = str(getattr(function, "__module__", None) or "__main__")
    return call


@dataclasses.dataclass(frozen=True)
class Notebook:
    """A notebook with its parameters; a parameter may be ``${{ params.x }}`` of the flow."""

    path: Path
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]

    def make(self, flow: Flow, node: str) -> Made:
        from vcnb.client.functions.notebook import DEFAULT_IMAGE, NotebookOptions, packed_notebook, prepare

        options = NotebookOptions.of(self.options)
        parameters = {key: self._resolved(flow, node, key, value) for key, value in self.parameters.items()}
        ready = prepare(self.path, parameters, options)
        packed = packed_notebook(ready.notebook, options)
        chosen = dataclasses.replace(options, image=options.image or DEFAULT_IMAGE, namespace=flow.namespace)
        where = str(options.output or ready.output)
        return _made(flow, node, chosen, packed, ("notebook", "notebook", ready.name, 1), {}, {OUTPUT: where})

    @staticmethod
    def _resolved(flow: Flow, node: str, key: str, value: Any) -> Any:
        name = only_parameter(value)
        if name is not None and name in flow.params:
            return flow.params[name]
        if isinstance(value, str) and has_expressions(value):
            raise VcnbError(
                f"node {node!r}: the parameters of a notebook are injected when the flow is submitted, so {key!r} can only "
                "be ${{ params.NAME }}; let the notebook read an environment variable instead (env={...})"
            )
        return value


def _made(
    flow: Flow,
    node: str,
    options: RunOptions,
    packed: Packed,
    how: tuple[str, str, str, int],
    outputs: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
) -> Made:
    kind, task, of, pods = how
    secret_name = f"{flow.name}-{node}-{packed.nonce[:8]}"
    secret = packed.secret("", node)
    secret["metadata"] = {"name": secret_name, **({"namespace": flow.namespace} if flow.namespace else {})}
    job: Job = options.job(kind, task, of, node, packed, secret_name, pods)
    manifest = json.loads(json.dumps(job.to_manifest()))
    manifest["metadata"]["annotations"].update(annotations or {})
    template = template_from_job(manifest)
    del template["metadata"]["name"]
    return Made(template, objects=(secret,), outputs=outputs)
