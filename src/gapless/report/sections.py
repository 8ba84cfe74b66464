"""What a report is made of: a verdict, sections, tables and plots. How it looks is all in page.html.

    write("report.html", "Fit of go2", Verdict("The error fell from 0.84 to 0.12 deg.", good=True), [Section("Errors", ...)])

Every string is taken for hostile: it comes from logs and models.
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gapless.files import atomic

TEMPLATE = Path(__file__).with_name("page.html")
# seen on white and on black, and by the colour-blind
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#4a90d9", "#e69f00", "#2a9d6f", "#e0533d", "#9467bd", "#9a9a9a"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, "#8c6d31", "#d6616b", "#7f7f7f", "#b5a100", "#17becf")


@dataclass(frozen=True)
class Verdict:
    """What a reader takes away, and whether that is good news."""

    text: str
    good: bool


@dataclass(frozen=True)
class Cell:
    """A cell of a table with a background, from 0 (none) to 1."""

    text: str
    tint: float


@dataclass(frozen=True)
class Table:
    """Columns after the first `words` of them are numbers, and stand to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    words: int = 1
    fold: str = ""
    """What to click on to see the table; empty shows it."""


@dataclass(frozen=True)
class Plot:
    """A small plotly figure as plain data (see `line`, `dots`); its title is HTML text, never plotly's."""

    title: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the usual layout in page.html; the title of an axis is a text."""
    height: int = 200
    """In pixels; the width is the page's to choose."""


@dataclass(frozen=True)
class Section:
    """A heading and what is under it, in this order."""

    title: str
    text: str | Sequence[str] = ()
    """Paragraphs."""
    table: Table | None = None
    legend: Sequence[tuple[str, str]] = ()
    """Label and colour, for all plots of the section."""
    plots: Sequence[Plot] = ()
    narrow: bool = False
    """Whether plots may be half as wide as usual."""
    wide: bool = False
    """Whether they fill the width of the page."""


def write(path: str | os.PathLike[str], title: str, verdict: Verdict, sections: Sequence[Section]) -> None:
    """Write the page; the file appears whole or not at all."""
    import jinja2
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    paragraphs = [([s.text] if isinstance(s.text, str) else list(s.text)) for s in sections]
    html = environment.from_string(TEMPLATE.read_text()).render(
        title=title,
        verdict=verdict,
        sections=list(zip(sections, paragraphs, strict=True)),
        figure=lambda plot: _json({"data": plot.data, "layout": plot.layout}),
        plotly=get_plotlyjs(),
    )
    with atomic(Path(path)) as part:
        part.write_text(html, encoding="utf-8")


def numbers(values: ArrayLike) -> dict[str, str]:
    """Numbers for plotly, as single-precision bytes: a third of what they take as text."""
    array = np.asarray(values, dtype="<f4")
    return {"dtype": "f4", "bdata": base64.b64encode(array.tobytes()).decode()}


def line(x: ArrayLike, y: ArrayLike, colour: str, width: float = 1.5, dash: str = "solid", name: str = "") -> dict[str, Any]:
    """A line for a plot."""
    style = {"color": colour, "width": width, "dash": dash}
    return {"type": "scatter", "mode": "lines", "x": numbers(x), "y": numbers(y), "line": style, "name": name}


def dots(x: ArrayLike, y: ArrayLike, colour: str, size: float = 3, opacity: float = 0.4, name: str = "") -> dict[str, Any]:
    """A cloud of points for a plot."""
    style = {"color": colour, "size": size, "opacity": opacity}
    return {"type": "scatter", "mode": "markers", "x": numbers(x), "y": numbers(y), "marker": style, "name": name}


def _json(data: Any) -> str:
    """JSON that cannot end the script it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
