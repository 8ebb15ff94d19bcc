"""SVG figures: one drawing for a live view, where the page's theme colours it, and for a saved notebook, as an image.

A figure's shapes carry classes only. The rules of those classes are the same everywhere; what differs is where the custom
properties behind them come from: JupyterLab's theme variables in a live view, own light and dark values inside an image
(which sees nothing of the page). The image is the form that survives in an untrusted notebook, where inline SVG does not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Final

from vcnb.scene.words import COLOURS, Mark

__all__ = ["RULES", "Figure", "clip", "element", "live_style", "number", "shape", "text", "titled"]

_TITLES: Final = re.compile("<title>.*?</title>")
_LIGHT: Final[Mapping[str, str]] = {
    "ink": "#24292f",
    "soft": "#6e7781",
    "line": "#c4cad1",
    "paper": "#ffffff",
    "off": "#6e7781",
    "run": "#0969da",
    "good": "#1a7f37",
    "wait": "#b35900",
    "bad": "#cf222e",
}
_DARK: Final[Mapping[str, str]] = {
    "ink": "#e6e8eb",
    "soft": "#9aa4ae",
    "line": "#4a525b",
    "paper": "#1c1f24",
    "off": "#9aa4ae",
    "run": "#58a6ff",
    "good": "#4ac26b",
    "wait": "#f0a040",
    "bad": "#ff7b72",
}
_THEMED: Final[Mapping[str, str]] = {
    "ink": "var(--jp-ui-font-color1, #24292f)",
    "soft": "var(--jp-ui-font-color2, #6e7781)",
    "line": "var(--jp-border-color1, #c4cad1)",
    "paper": "var(--jp-layout-color0, #ffffff)",
    **COLOURS,
}
_TONES: Final = tuple(COLOURS)

RULES: Final = "".join(
    [
        ".vt{font:12px system-ui,sans-serif;fill:var(--v-ink)}",
        ".vs{font:10.5px system-ui,sans-serif;fill:var(--v-ink);opacity:.78}",
        ".vb{font-weight:600}",
        ".vl{fill:var(--v-line)}",
        ".vx{fill:none;stroke:var(--v-line);stroke-width:1.2}",
        ".vg{stroke:var(--v-line);stroke-width:1;opacity:.6}",
        ".vn{fill:var(--v-paper);stroke:var(--v-line);stroke-width:1.2}",
        ".vf{opacity:.4}",
        ".vq{opacity:.75}",
        ".vh{opacity:.13}",
        ".vd{stroke-dasharray:4 3}",
        ".vo{stroke-dasharray:1.5 3}",
        ".vw{stroke-width:2.4}",
        *(
            f".vf-{tone}{{fill:var(--v-{tone})}}.vk-{tone}{{stroke:var(--v-{tone})}}"
            f".vc-{tone}{{fill:var(--v-{tone});fill-opacity:.16;stroke:var(--v-{tone})}}"
            for tone in _TONES
        ),
        ".v1{opacity:1}",
    ]
)
"""t text, s small, b bold, l arrow head, x edge, g grid line, n node, d dashed, o dotted, w wide, f q h ever fainter;
``f-``, ``k-``, ``c-``: the fill, the stroke and a cell of a tone."""


def _properties(values: Mapping[str, str]) -> str:
    return "".join(f"--v-{name}:{value};" for name, value in values.items())


def live_style() -> str:
    """The style sheet of figures in a live view."""
    return f".vcnb{{{_properties(_THEMED)}}}{RULES}"


_IMAGE_STYLE: Final = (
    f"svg{{{_properties(_LIGHT)}}}@media(prefers-color-scheme:dark){{svg{{{_properties(_DARK)}}}}}"
    f".paper{{fill:var(--v-paper)}}{RULES}"
)


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def element(tag: str, content: str = "", /, **attributes: str | float) -> str:
    """An element; ``content`` is markup, values of attributes are escaped, ``_`` in their names is ``-``."""
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{number(value) if isinstance(value, float | int) else escape(value)}"'
        for name, value in attributes.items()
        if value != ""
    )
    return f"<{tag}{pairs}>{content}</{tag}>" if content else f"<{tag}{pairs}/>"


def titled(words: str, content: str, /, **attributes: str | float) -> str:
    """A group that says something when it is pointed at."""
    return element("g", element("title", escape(words)) + content, **attributes)


def text(x: float, y: float, words: str, /, class_: str = "vt", anchor: str = "", **attributes: str | float) -> str:
    """A line of text; escaped."""
    return element("text", escape(words), x=x, y=y, class_=class_, text_anchor=anchor, **attributes)


def shape(x: float, y: float, mark: Mark, anchor: str = "middle") -> str:
    """A state's shape in its tone."""
    return text(x, y, mark.shape, f"vt vb vf-{mark.tone}", anchor)


def clip(words: str, characters: int) -> str:
    """At most so many characters; the middle goes first, because names differ at their ends."""
    if len(words) <= characters:
        return words
    head = (characters - 1) // 2
    return f"{words[:head]}…{words[len(words) - (characters - 1 - head) :]}"


@dataclass(frozen=True)
class Figure:
    """A drawing: its size in pixels, its markup, and ``label``, the same said in words."""

    width: float
    height: float
    body: str
    label: str

    def _svg(self, inside: str, **attributes: str | float) -> str:
        box = f"0 0 {number(self.width)} {number(self.height)}"
        return element("svg", inside, viewBox=box, width=self.width, height=self.height, **attributes)

    def inline(self) -> str:
        """For a live view: inline SVG, coloured by the page."""
        return self._svg(self.body, class_="v-figure", role="group", aria_label=self.label)

    def svg(self) -> str:
        """A file of its own: with its style, light or dark as the reader's system is; nothing in it can be pointed at."""
        paper = element("rect", class_="paper", width=self.width, height=self.height, rx=6)
        style = element("style", _IMAGE_STYLE)
        return self._svg(f"{style}{paper}{_TITLES.sub('', self.body)}", xmlns="http://www.w3.org/2000/svg")

    def image(self) -> str:
        """For a saved notebook: an ``<img>`` with the drawing inside and its words as alternative text."""
        data = base64.b64encode(self.svg().encode()).decode()
        alt = escape(self.label)
        style = f"max-width:100%;width:{number(self.width)}px;display:block"
        return f'<img alt="{alt}" style="{style}" src="data:image/svg+xml;base64,{data}">'

    def show(self, *, live: bool) -> str:
        """Inline or as an image."""
        return self.inline() if live else self.image()
