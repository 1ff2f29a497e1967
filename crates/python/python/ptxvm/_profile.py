"""Where the time of a launch goes."""

import html
import json
from typing import NamedTuple, Optional

from ._native import Kernel


class Line(NamedTuple):
    """A line with instructions, and what warps of 32 threads did there."""

    file: str
    line: int
    text: str
    source: Optional[str]
    executions: int
    threads: int
    active_lanes: float
    diverged: int
    vector: int
    broadcast: int
    gather: int
    seconds: float
    share: float


class Profile(list):
    """The lines of a kernel, in order; ``pandas.DataFrame(profile)`` is a table of them."""

    def __init__(self, lines=(), report=None, table="", page=""):
        super().__init__(lines)
        #: What the launch did.
        self.report = report
        #: The lines with the most time, as text.
        self.table = table
        #: The annotated source, as a page of HTML.
        self.page = page

    def hottest(self, count=10):
        """The lines with the most time."""
        return sorted(self, key=lambda line: -line.share)[:count]

    def save(self, path):
        """Writes the page (``.html``) or the table."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page if str(path).endswith(".html") else self.table)

    def divergence(self):
        """A picture (SVG) of how many of 32 lanes were active at each line; lines at which threads went different ways are marked."""
        reached = [line for line in self if line.executions]
        step, width = 14, 10
        height = step * len(reached) + 2
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{32 * width + 560}" height="{height}" font-family="monospace" font-size="11">'
        ]
        for row, line in enumerate(reached):
            top = row * step + 1
            color = "#d9480f" if line.diverged else "#4c8bc9"
            parts.append(f'<rect x="40" y="{top}" width="{32 * width}" height="{step - 3}" fill="#8883"/>')
            parts.append(
                f'<rect x="40" y="{top}" width="{line.active_lanes * width:.1f}" height="{step - 3}" fill="{color}">'
                f"<title>{line.active_lanes:.1f} of 32 lanes, diverged {line.diverged} times</title></rect>"
            )
            base = top + step - 5
            parts.append(f'<text x="34" y="{base}" text-anchor="end" fill="#888">{line.line}</text>')
            text = html.escape(" ".join(line.text.split())[:80])
            parts.append(f'<text x="{48 + 32 * width}" y="{base}" fill="currentColor">{text}</text>')
        return "".join(parts) + "</svg>"

    def __str__(self):
        return self.table.rstrip()

    __repr__ = __str__

    def _repr_html_(self):
        page = html.escape(self.page, quote=True)
        return (
            f'<details open><summary>active lanes</summary>{self.divergence()}</details>'
            f'<iframe srcdoc="{page}" style="width:100%;height:480px;border:1px solid #8884"></iframe>'
        )


def run(launcher, arguments, options):
    if isinstance(launcher, Kernel):
        raise TypeError(f"a kernel needs a grid and a block: profile({launcher.name}[grid, block], ..)")
    report, text, table, page = launcher._profile(*arguments, **options)
    lines = []
    for line in json.loads(text)["lines"]:
        accesses = line.pop("accesses")
        line.setdefault("source", None)
        lines.append(Line(**line, **accesses))
    return Profile(lines, report, table, page)
