"""Slips: a measurement whose lag behind its command jumps by whole samples at some moment, and stays."""

from collections.abc import Iterator

import numpy as np

from gapless.logs.inspection.finding import WARNING, Finding
from gapless.logs.log import Log

WINDOW = 3.0
"""s over which a lag is measured."""
LONGEST = 0.3
"""s"""


def slip_findings(log: Log) -> Iterator[Finding]:
    """The largest lasting change of the lag between command and measurement."""
    if "q" not in log or "q_cmd" not in log or len(log["q"].time) < 200:
        return
    time = log["q"].time
    if np.any(np.diff(time) <= 0) or not log["q_cmd"].ordered:
        return
    period = float(np.median(np.diff(time)))
    if period > 0.1 * LONGEST or time[-1] - time[0] > 3 * period * len(time):  # too slow, or mostly holes
        return
    times, lags = _lags(log, period)
    if len(times) < 8:
        return
    best = 0.0
    for i in range(5, len(times) - 3):  # steady before, steady behind, and another lag
        before, behind = lags[i - 5 : i - 1], lags[i + 1 : i + 4]
        step = float(np.median(behind) - np.median(before))
        steady = max(np.ptp(before), np.ptp(behind)) < 1.5 * period
        stays = abs(np.median(lags[i + 1 :]) - np.median(behind)) < 1.5 * period
        if steady and stays and abs(step) > max(1.8 * period, abs(best)):
            best, start = step, float(times[i])
    if best:
        text = f"q slips at about {start:.0f} s: its lag changes by {best / period:+.0f} samples ({best * 1e3:+.0f} ms)"
        yield Finding("slip", WARNING, text, "q", start=start, end=float(time[-1]), value=best, unit="s")


def _lags(log: Log, period: float) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each window (s), and the median lag over the joints that move in it (s)."""
    grid = np.arange(log["q"].time[0], log["q"].time[-1], period)
    names = log.shared("q", "q_cmd")
    q = {j: np.gradient(np.interp(grid, log["q"].time, log["q"].column(j))) for j in names}
    u = {j: np.gradient(np.interp(grid, log["q_cmd"].time, log["q_cmd"].column(j))) for j in names}
    reach, width = int(LONGEST / period), max(int(WINDOW / period), 30)
    times, lags = [], []
    for start in range(reach, len(grid) - width, width // 2):
        votes = []
        for joint in names:
            command = u[joint][start : start + width]
            if np.std(command) < 2e-4 or not np.isfinite(command).all():
                continue
            past = np.array([u[joint][start - s : start - s + width] for s in range(reach)])
            past -= past.mean(1, keepdims=True)
            seen = q[joint][start : start + width] - q[joint][start : start + width].mean()
            alike = past @ seen / (np.linalg.norm(past, axis=1) * np.linalg.norm(seen) + 1e-12)
            i = int(np.argmax(alike))
            if alike[i] > 0.9:
                votes.append(i * period)
        if votes:
            times.append(grid[start + width // 2])
            lags.append(float(np.median(votes)))
    return np.array(times), np.array(lags)
