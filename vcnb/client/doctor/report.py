"""What a doctor has found: findings, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple, TypeAlias

from vcnb.scene.markup import block, table
from vcnb.scene.words import COLOURS

__all__ = ["Finding", "Level", "Report"]

Level: TypeAlias = Literal["ok", "note", "problem"]
_SHAPES = {"ok": ("✔", "good"), "note": ("!", "wait"), "problem": ("✘", "bad")}


class Finding(NamedTuple):
    """One thing that was looked at: ``area`` (python, embedded, kubernetes ...), ``about`` and what was found.

    ``level``: ``ok``, ``note`` (works, with a restriction) or ``problem``. ``advice``: what to do, or whom to ask for what.
    """

    area: str
    about: str
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Report:
    """All findings, in the order in which things were looked at."""

    findings: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def problems(self) -> list[Finding]:
        """What does not work."""
        return [finding for finding in self.findings if finding.level == "problem"]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def verdict(self) -> str:
        """The last line."""
        notes = sum(finding.level == "note" for finding in self.findings)
        found = f"{len(self.problems)} problem{'s' * (len(self.problems) != 1)}" if self.problems else "no problems"
        return f"{found}, {notes} note{'s' * (notes != 1)}, {len(self.findings)} things looked at"

    def __str__(self) -> str:
        lines: list[str] = []
        area = ""
        for finding in self.findings:
            if finding.area != area:
                area = finding.area
                lines.append(area)
            lines.append(f"  {_SHAPES[finding.level][0]} {finding.about}: {finding.text}")
            if finding.advice:
                lines += [f"      {line}" for line in finding.advice.splitlines()]
        return "\n".join([*lines, self.verdict])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for finding in self.findings:
            shape, tone = _SHAPES[finding.level]
            marked = f'<span style="color:{COLOURS[tone]}" title="{finding.level}">{shape} {finding.level}</span>'
            advice = "".join(f"<div>{escape(line)}</div>" for line in finding.advice.splitlines())
            rows.append((marked, escape(finding.area), escape(finding.about), f"{escape(finding.text)}{advice}"))
        return block(f"{table(('', 'area', 'what', 'found'), rows)}<div><b>{escape(self.verdict)}</b></div>")
