"""``cluster.metrics()``: the numbers of the controllers under Volcano's names, as text, as a table, and over HTTP."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from vcnb.controllers.runtime.exposition import CONTENT_TYPE, exposition
from vcnb.errors import VcnbError

if TYPE_CHECKING:
    from vcnb.client.backend import Backend

__all__ = ["Metrics", "MetricsServer", "Sample", "cluster_metrics"]

_DETAILS: Final = ("_bucket", "_sum", "_created")
"""Parts of histograms that a short text leaves out."""


class Sample(NamedTuple):
    """One number."""

    name: str
    labels: dict[str, str]
    value: float

    def __str__(self) -> str:
        labels = ", ".join(f"{key}={value}" for key, value in self.labels.items())
        return f"{self.name}{{{labels}}} {self.value:g}" if labels else f"{self.name} {self.value:g}"


@dataclass(frozen=True)
class Metrics:
    """What the controllers have counted since they started.

    ``text`` is the Prometheus exposition format; iterating gives samples (``name labels value``).
    """

    text: str = field(repr=False)
    samples: tuple[Sample, ...]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels; 0 when there is none."""
        return sum(
            (sample.value for sample in self if sample.name == name and labels.items() <= sample.labels.items()), 0.0
        )

    def to_pandas(self) -> Any:
        """A pandas DataFrame with the columns ``name``, ``labels`` (a dict) and ``value``."""
        import pandas as pd

        return pd.DataFrame([sample._asdict() for sample in self], columns=["name", "labels", "value"])

    def figure(self) -> Any:
        """A plotly figure: a bar for every number that is not zero, by name and labels."""
        import plotly.graph_objects as go

        shown = [sample for sample in self if sample.value and not sample.name.endswith(_DETAILS)]
        words = [", ".join(f"{key}={value}" for key, value in sample.labels.items()) for sample in shown]
        figure = go.Figure()
        figure.add_bar(
            orientation="h",
            y=[f"{sample.name} {{{word}}}" if word else sample.name for sample, word in zip(shown, words, strict=True)],
            x=[sample.value for sample in shown],
            marker_color="#1976d2",
            hovertemplate="%{y}: %{x}<extra></extra>",
        )
        figure.update_layout(
            title="What the controllers have counted",
            template="plotly_white",
            height=140 + 24 * max(len(shown), 1),
            yaxis={"autorange": "reversed", "automargin": True},
        )
        return figure

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __str__(self) -> str:
        short = [str(sample) for sample in self if sample.value and not sample.name.endswith(_DETAILS)]
        return "\n".join(short) or "no job has finished yet, and no PodGroup is there"

    __repr__ = __str__


async def cluster_metrics(backend: Backend) -> Metrics:
    """Read all numbers: the controllers', and the cache's once it is in use. Runs on the cluster's loop.

    Raises VcnbError when the controllers are off.
    """
    if backend.plane is None:
        raise VcnbError('nothing is counted while the controllers are off; connect without "controllers=off"')
    registry = backend.plane.metrics()
    cache = backend.cache.embedded
    if cache is not None:
        await cache.measure()
        registry.register(cache.metrics.collector())
    samples = tuple(
        Sample(sample.name, dict(sample.labels), float(sample.value))
        for family in registry.collect()
        for sample in family.samples
    )
    return Metrics(exposition(registry), samples)


class MetricsServer:
    """Serves ``/metrics`` on the loopback address to whoever knows the token; a context manager that ends it.

    ``read`` gives the text for each request. ``port=0`` takes any free one (then see ``url``). The token goes into the
    header ``Authorization: Bearer TOKEN`` or the query ``?token=TOKEN``.
    """

    def __init__(self, read: Callable[[], str], port: int = 0, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(read, self.token))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="vcnb-metrics", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the numbers are, without the token."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/metrics"

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _handler(read: Callable[[], str], token: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "vcnb"
        sys_version = ""

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            if not self._may_read(asked.query):
                self._answer(401, "a token is needed: Authorization: Bearer TOKEN, or ?token=TOKEN\n")
            elif asked.path not in {"/metrics", "/"}:
                self._answer(404, "there is only /metrics\n")
            else:
                self._answer_with_numbers()

        def _may_read(self, query: str) -> bool:
            scheme, _, given = (self.headers.get("Authorization") or "").partition(" ")
            if scheme.lower() != "bearer":
                given = (parse_qs(query).get("token") or [""])[0]
            return hmac.compare_digest(given.strip().encode(), token.encode())

        def _answer_with_numbers(self) -> None:
            try:
                text = read()
            except VcnbError as error:
                self._answer(503, f"{error}\n")
            else:
                self._answer(200, text)

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", "Bearer")
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged: requests may hold the token."""

    return Handler
