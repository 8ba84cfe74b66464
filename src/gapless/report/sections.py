"""What a report is made of: a verdict, sections, tables and plots. Its layout is in page.html, its colours are here.

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

from gapless.arrays import Array
from gapless.files import atomic

TEMPLATE, VIEWER = (Path(__file__).with_name(name) for name in ("page.html", "viewer.js"))
# seen on white and on black, and by the colour-blind
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#4a90d9", "#e69f00", "#2a9d6f", "#e0533d", "#9467bd", "#9a9a9a"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, "#8c6d31", "#d6616b", "#7f7f7f", "#b5a100", "#17becf")
GHOSTS = ("", ORANGE, RED, BLUE)  # of robots that are drawn over the first


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
class Film:
    """Robots that move, as plain data: shapes on bodies, and the poses of the bodies over time (see viewer.js)."""

    shapes: Sequence[Mapping[str, Any]]
    """Each with `body`, `kind` (box, cylinder, capsule, ellipsoid, mesh), `size`, `pos`, `quat`, `colour`, `points`."""
    time: Array
    """Shape: (frames,) [s]."""
    poses: Mapping[str, Array]
    """What to call a robot, to positions [m] and quaternions of its bodies. Shape of each: (frames, bodies, 7).

    The first has its own colours, the others are drawn over it as ghosts.
    """
    floor: float
    """Height of the ground [m]."""


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
    film: Film | None = None
    """Beside the table, where the page is wide enough."""


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
        scene=lambda film: _json(_scene(film)),
        ghosts=GHOSTS,
        viewer=VIEWER.read_text() if any(s.film for s in sections) else "",
        plotly=get_plotlyjs(),
    )
    with atomic(Path(path)) as part:
        part.write_text(html, encoding="utf-8")


def _scene(film: Film) -> dict[str, Any]:
    """A film as the viewer takes it. What is not finite stays at the origin."""
    first = np.nan_to_num(next(iter(film.poses.values())))
    used = sorted({int(shape["body"]) for shape in film.shapes})
    places = np.concatenate([np.nan_to_num(p)[:, used, :3].reshape(-1, 3) for p in film.poses.values()])
    low, high = np.percentile(places, [1, 99], axis=0) if len(places) else np.zeros((2, 3))
    robots = []
    for i, (label, poses) in enumerate(film.poses.items()):
        colour = [int(GHOSTS[i][k : k + 2], 16) / 255 for k in (1, 3, 5)] if i else None
        values = np.nan_to_num(poses[:, used]).astype("<f4")
        robots.append({"label": label, "colour": colour, "alpha": 0.5 if i else 1.0, "poses": _base64(values)})
    shapes = [dict(shape) | {"body": used.index(int(shape["body"]))} for shape in film.shapes]
    return {
        "shapes": shapes,
        "bodies": len(used),
        "time": _base64(np.asarray(film.time, "<f4")),
        "robots": robots,
        "centre": ((low + high) / 2).tolist(),
        "radius": max(float(np.linalg.norm(high - low)) / 2, 0.1) if first.size else 1.0,
        "floor": film.floor,
    }


def _base64(array: Array) -> str:
    return base64.b64encode(array.tobytes()).decode()


def numbers(values: ArrayLike) -> dict[str, str]:
    """Numbers for plotly, as single-precision bytes: a third of what they take as text."""
    array = np.asarray(values, dtype="<f4")
    return {"dtype": "f4", "bdata": _base64(array)}


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
