"""A picture of every signal of a log, in one file that works offline."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs.log import Log

if TYPE_CHECKING:
    from gapless.logs.inspection import Report

MOST_POINTS = 4000
"""Points drawn of a channel: the lowest and highest of each stretch, so that no spike is lost."""
MEASURED = {"q_cmd": "q", "dq_cmd": "dq", "tau_cmd": "tau"}


def plot(log: Log, report: "Report", path: Path) -> None:
    """One row a quantity, commands dashed over what was measured; findings as grey bands. HTML or PNG by suffix."""
    import plotly.graph_objects as go
    from plotly.colors import qualitative
    from plotly.subplots import make_subplots

    if path.suffix.lower() not in (".html", ".png"):
        raise BadInput(f"{path}: a plot is written as .html or .png")
    rows = [name for name in log.signals if MEASURED.get(name, name) == name or MEASURED[name] not in log]
    figure = make_subplots(rows=len(rows), cols=1, shared_xaxes=True, vertical_spacing=min(0.03, 0.3 / max(len(rows), 1)))
    for name, signal in log.signals.items():
        row = rows.index(name if name in rows else MEASURED[name]) + 1
        for i, column in enumerate(signal.columns):
            x, y = _thinned(signal.time, signal.values[:, i])
            colour = qualitative.D3[i % len(qualitative.D3)]
            line = {"color": colour, "width": 1, "dash": "dot" if name in MEASURED else "solid"}
            label = f"{name} {column}"
            figure.add_trace(go.Scattergl(x=x, y=y, name=label, legendgroup=column, line=line, mode="lines"), row=row, col=1)
        figure.update_yaxes(title_text=f"{rows[row - 1]} [{signal.unit}]", row=row, col=1)
    for finding in report.findings:
        if finding.start is not None and finding.end is not None and finding.signal in rows:
            band = {"fillcolor": "grey", "opacity": 0.2, "line_width": 0, "row": rows.index(finding.signal) + 1, "col": 1}
            figure.add_vrect(x0=finding.start, x1=max(finding.end, finding.start + 1e-3), **band)
    figure.update_xaxes(title_text="time [s]", row=len(rows), col=1)
    title = f"{Path(log.provenance.source).name}: {len(report.findings)} findings"
    figure.update_layout(height=max(220 * len(rows), 400), title=title, template="plotly_white")
    with disk.atomic(path) as temporary:
        if path.suffix.lower() == ".html":
            figure.write_html(temporary, include_plotlyjs=True)
            return
        try:
            figure.write_image(temporary, format="png", width=1200)
        except (ValueError, RuntimeError, ImportError) as error:
            raise BadInput(f"{path}: PNG needs kaleido ({str(error).splitlines()[0]}); use .html") from None


def _thinned(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(values) <= MOST_POINTS:
        return time, values
    width = 2 * len(values) // MOST_POINTS
    blocks = np.nan_to_num(values[: len(values) // width * width]).reshape(-1, width)
    ends = np.sort(np.column_stack([blocks.argmin(1), blocks.argmax(1)]), axis=1) + np.arange(len(blocks))[:, None] * width
    return time[ends.ravel()], values[ends.ravel()]
