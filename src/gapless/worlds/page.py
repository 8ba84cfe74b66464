"""A page of a replay: measured, replayed and commanded, joint by joint; one HTML file that works offline."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gapless.files import atomic
from gapless.worlds.replayer import Replay

MOST_POINTS = 4000  # of a line; more cannot be seen and make the file slow


def page(replays: dict[str, Replay], path: str | os.PathLike[str]) -> None:
    """Plot the first vector of parameters of each replay (log name to replay); the file appears whole or not at all."""
    import plotly.graph_objects as go
    import plotly.io
    from plotly.subplots import make_subplots

    parts: list[str] = []
    for name, replay in replays.items():
        joints = replay.joints
        rows = -(-len(joints) // 2)
        figure = make_subplots(
            rows=rows, cols=2, subplot_titles=[*joints], shared_xaxes=True, vertical_spacing=0.25 / max(rows, 3)
        )
        for j in range(len(joints)):
            place = {"row": j // 2 + 1, "col": j % 2 + 1}
            for label, values, line in (
                ("command", replay.command[..., j], {"color": "#b0b0b0", "width": 1}),
                ("measured", replay.measured["q"][..., j], {"color": "#1f77b4", "width": 2}),
                ("replayed", replay.replayed["q"][0, ..., j], {"color": "#d62728", "width": 1.5}),
            ):
                time, degrees = _line(replay, np.degrees(values))
                figure.add_trace(
                    go.Scatter(x=time, y=degrees, name=label, legendgroup=label, showlegend=j == 0, line=line), **place
                )
        error = np.degrees(replay.rmse("q")[0])
        title = (
            f"{name}: error {error.mean():.3g} deg (worst {joints[int(error.argmax())]}, {error.max():.3g}); y in deg, x in s"
        )
        figure.update_layout(title=title, height=160 + 200 * rows, template="plotly_white", hovermode="x")
        parts.append(plotly.io.to_html(figure, include_plotlyjs=not parts, full_html=False))
    body = "\n".join(parts)
    html = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Replay</title><body>{body}</body></html>'
    with atomic(Path(path)) as part:
        part.write_text(html)


def _line(replay: Replay, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All windows after one another, with a break between two, thinned to what can be seen."""
    time = replay.starts[:, None] - replay.starts[0] + replay.time
    gap = np.full((len(time), 1), np.nan)
    flat_time, flat = np.hstack([time, gap]).ravel(), np.hstack([values, gap]).ravel()
    every = max(1, len(flat) // MOST_POINTS)
    return flat_time[::every], flat[::every]
