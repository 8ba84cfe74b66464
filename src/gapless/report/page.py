"""The look of a report: one HTML file that works offline, on a phone, in the dark and on paper.

    write("report.html", "Fit of go2", Verdict("The error fell from 0.84 to 0.12 deg.", good=True), [Section("Errors", ...)])

Every string is taken for hostile: it comes from logs and models.
"""

from __future__ import annotations

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

BLUE, RED, ORANGE, GREY = "#4a90d9", "#e0533d", "#e69f00", "#9a9a9a"  # seen on white and on black, and by the colour-blind


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

    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(_PAGE)
    paragraphs = [([s.text] if isinstance(s.text, str) else list(s.text)) for s in sections]
    html = template.render(
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


_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ title }}</title>
<style>
:root { --ink: #1c1e21; --soft: #63676e; --paper: #fff; --card: #f6f7f8; --rule: #dfe2e6; --good: #1a7f4b; --bad: #c0331d; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e7e9; --soft: #9ba1a9; --paper: #16181b; --card: #1f2226; --rule: #363a40; }
  :root { --good: #4cc38a; --bad: #ff7a66; }
}
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --card: #fff; --rule: #bbb; --good: #1a7f4b; --bad: #c0331d; }
  figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 78rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0.4rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 0.4rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
p { max-width: 46rem; margin: 0.4rem 0; color: var(--soft); }
.verdict { color: var(--ink); font-size: 1.15rem; max-width: none; padding: 0.9rem 1.1rem; background: var(--card);
  border-left: 6px solid var(--bad); border-radius: 6px; }
.verdict.good { border-color: var(--good); }
.wide { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
.word { text-align: left; white-space: normal; min-width: 5.5rem; }
@media (max-width: 30rem) { body { padding: 0.8rem; } table { font-size: 0.8rem; } th, td { padding: 0.25rem 0.35rem; } }
td[style] { background: color-mix(in srgb, var(--bad) calc(var(--tint) * 45%), transparent); print-color-adjust: exact; }
summary { cursor: pointer; color: var(--soft); padding: 0.4rem 0; }
.legend span { margin-right: 1.2rem; white-space: nowrap; color: var(--ink); }
.legend i { display: inline-block; width: 1.4rem; height: 3px; vertical-align: middle; margin-right: 0.4rem;
  print-color-adjust: exact; }
.plots { display: grid; gap: 0.8rem; margin: 0.8rem 0; }
.plots { grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); }
.plots.wide { grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
.plots.narrow { grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
figure { margin: 0; padding: 0.5rem 0.6rem 0.2rem; background: var(--card); border-radius: 6px;
  min-width: 0; overflow: hidden; }
figcaption { font-size: 0.85rem; color: var(--soft); line-height: 1.3; }
.plot text { fill: var(--soft) !important; }
.plot .gridlayer path, .plot .zerolinelayer path { stroke: var(--rule) !important; }
.plot .hoverlayer text { fill: #fff !important; }
</style>
<script>{{ plotly | safe }}</script>
</head>
<body>
<h1>{{ title }}</h1>
<p class="verdict{{ ' good' if verdict.good }}">{{ verdict.text }}</p>
<noscript><p>The plots need JavaScript; the tables do not.</p></noscript>
{% for section, paragraphs in sections %}
<section>
<h2>{{ section.title }}</h2>
{% for paragraph in paragraphs %}
<p>{{ paragraph }}</p>
{% endfor %}
{% if section.table %}
{% if section.table.fold %}<details><summary>{{ section.table.fold }}</summary>{% endif %}
<div class="wide"><table>
<thead><tr>{% for cell in section.table.head %}<th{{ ' class=word' if loop.index <= section.table.words }}>{{ cell }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in section.table.rows %}
<tr>{% for cell in row %}
{%- if cell is string %}<td{{ ' class=word' if loop.index <= section.table.words }}>{{ cell }}</td>
{%- else %}<td style="--tint: {{ '%.3f' % cell.tint }}">{{ cell.text }}</td>{% endif %}
{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
{% if section.table.fold %}</details>{% endif %}
{% endif %}
{% if section.legend %}
<p class="legend">{% for label, colour in section.legend %}
<span><i style="background: {{ colour }}"></i>{{ label }}</span> {% endfor %}</p>
{% endif %}
{% if section.plots %}
<div class="plots{{ ' narrow' if section.narrow }}{{ ' wide' if section.wide }}">
{% for plot in section.plots %}
<figure><figcaption>{{ plot.title }}</figcaption><div class="plot" style="height: {{ plot.height | int }}px">
<script type="application/json">{{ figure(plot) | safe }}</script></div></figure>
{% endfor %}
</div>
{% endif %}
</section>
{% endfor %}
<script>
"use strict";
// One plot at a time, from the top, so that a phone can scroll meanwhile.
const touch = matchMedia("(pointer: coarse)").matches;
const axis = { automargin: true, fixedrange: touch, zeroline: false, nticks: 6, title: { font: { size: 11 }, standoff: 4 } };
const usual = {
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { size: 11 }, showlegend: false,
  margin: { l: 40, r: 8, t: 6, b: 30 }, dragmode: touch ? false : "zoom", hovermode: touch ? false : "closest", bargap: 0.35,
};
function draw(place) {
  const source = place.querySelector("script");
  if (!source) return;
  const figure = JSON.parse(source.textContent);
  source.remove();
  const layout = { ...usual, ...figure.layout };
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(layout).filter((key) => /^[xy]axis/.test(key))])) {
    const own = layout[name] || {};
    layout[name] = { ...axis, ...own, title: { ...axis.title, ...own.title } };
  }
  Plotly.newPlot(place, figure.data, layout, { displayModeBar: false, responsive: true });
}
const places = [...document.querySelectorAll(".plot")];
const next = () => {
  const place = places.shift();
  if (place) { draw(place); setTimeout(next); } else document.body.dataset.drawn = "all";
};
addEventListener("beforeprint", () => { places.splice(0).forEach(draw); });
next();
</script>
</body>
</html>
"""
