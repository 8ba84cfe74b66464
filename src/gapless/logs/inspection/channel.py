"""Channels: values that are missing, dead, stuck, clipped, coarse, spiking, or chattering."""

from collections.abc import Iterator

import numpy as np

from gapless.logs.inspection.finding import ERROR, WARNING, Finding
from gapless.logs.log import HELD, Log, Signal
from gapless.logs.sensor import chatter, quantum

MOVED = 0.02
"""rad; a joint that moves less counts as standing still."""
STUCK_SECONDS = 0.3
STUCK_SHARE = 0.1
"""Share of the command's whole range that it must travel while a channel stands, and at least STUCK_TRAVEL rad."""
STUCK_TRAVEL = 0.15
COARSE = 0.005
"""rad; common encoders are ten times finer."""
SPIKE = {"q": 0.05, "dq": 2.0, "tau": 2.0, "gyro": 1.0, "acc": 5.0, "q_cmd": 0.3}
"""Smallest spike that is looked for, in the signal's unit."""
CHATTERS = {"tau": 2.0, "tau_cmd": 2.0, "dq": 2.0, "current": 1.0}
"""Smallest range, in the signal's unit, in which chatter is looked for."""
CLIPPABLE = ("tau", "current", "load", "duty", "dq", "gyro", "acc")


def channel_findings(log: Log) -> Iterator[Finding]:
    """What is wrong with single channels, each looked at alone or beside its command."""
    for signal in log.signals.values():
        for name, values in zip(signal.columns, signal.values.T, strict=True):
            yield from _missing(signal, name, values)
            if not np.isfinite(values).all() or len(values) < 20:
                continue
            if signal.name not in HELD:
                yield from _dead(log, signal, name, values)
                yield from _stuck(log, signal, name, values)
            yield from _clipped(log, signal, name, values)
            yield from _coarse(signal, name, values)
            yield from list(_chattering(signal, name, values)) or _spiking(signal, name, values)


def _missing(signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    gone = np.flatnonzero(~np.isfinite(values))
    if len(gone):
        text = f"{signal.name} of {name}: {len(gone)} of {len(values)} values are missing, first at sample {gone[0]}"
        start, end = signal.time[gone[0]], signal.time[gone[-1]]
        severity = ERROR if len(gone) == len(values) else WARNING
        yield Finding("missing", severity, text, signal.name, name, start, end, float(len(gone)), "samples")


def _dead(log: Log, signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    """A channel that never changes although what it belongs to does."""
    if np.ptp(values) > 0:
        return
    witness = {"q": "q_cmd", "dq": "q", "tau": "q"}.get(signal.name)
    if witness and witness in log and name in log[witness].columns:
        moved = np.nanmax(log[witness].column(name)) - np.nanmin(log[witness].column(name))
        if moved > 2 * MOVED:
            text = f"{signal.name} of {name} is dead: {values[0]:g} throughout, while its {witness} moves by {moved:.3g} rad"
            yield Finding("dead", ERROR, text, signal.name, name, value=float(moved), unit="rad")
    elif signal.name in ("gyro", "acc") and np.ptp(signal.values) > 0:
        yield Finding("dead", ERROR, f"{signal.name} {name} is dead: {values[0]:g} throughout", signal.name, name)


def _stuck(log: Log, signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    """A channel that stands still for a while although its command goes on."""
    witness = {"q": "q_cmd", "dq": "q"}.get(signal.name)
    if not witness or witness not in log or name not in log[witness].columns or np.ptp(values) == 0:
        return
    other, time = log[witness].column(name), log[witness].time
    if not np.isfinite(other).all() or not log[witness].ordered or not signal.ordered:
        return
    starts, ends = _runs(values, 2.5 * quantum([values]) if signal.name == "q" else 0.0)
    long = (signal.time[ends] - signal.time[starts]) > STUCK_SECONDS
    travel, worst = max(STUCK_TRAVEL, STUCK_SHARE * float(np.ptp(other))), None
    for first, last in zip(starts[long], ends[long], strict=True):
        begin, finish = np.searchsorted(time, [signal.time[first] + 0.1, signal.time[last] - 0.1])
        if finish - begin < 2:
            continue
        expected = 0.0 if signal.name == "q" else values[first] * (time[begin:finish] - time[begin])
        if (further := float(np.ptp(other[begin:finish] - expected))) > travel:
            travel, worst = further, (first, last)
    if worst:
        start, end = signal.time[list(worst)]
        stands = f"{signal.name} of {name} stands still at {values[worst[0]]:.4g} from {start:.3f} to {end:.3f} s"
        text = f"{stands} while its {witness} moves by {travel:.3g} rad"
        yield Finding("stuck", WARNING, text, signal.name, name, start, end, travel, "rad")


def _clipped(log: Log, signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    if signal.name not in CLIPPABLE or len(np.unique(values)) < 20:
        return
    for edge, word in ((values.max(), "highest"), (values.min(), "lowest")):
        if abs(edge) < 0.5 * np.abs(values).max():
            continue
        clipped = values == edge
        starts, ends = _runs(clipped.astype(float), 0.0)
        runs = [(i, j) for i, j in zip(starts, ends, strict=True) if clipped[i] and j - i >= 4]
        moving = [i for i, j in runs if _in_motion(log, name, signal.time[i], signal.time[j])]
        share = float(clipped.mean())
        if share > 0.002 and moving and clipped.sum() >= 10:
            text = f"{signal.name} of {name} is clipped: {100 * share:.2g} % of all samples are its {word} value, {edge:.4g}"
            start = signal.time[moving[0]]
            yield Finding("saturated", WARNING, text, signal.name, name, start, value=float(edge), unit=signal.unit)


def _in_motion(log: Log, name: str, start: float, end: float) -> bool:
    """Whether the joint moves, or is commanded to, around a time; one that holds its load may well rest at one value."""
    seen = False
    for witness in ("q_cmd", "q"):
        if witness in log and name in log[witness].columns:
            seen, time = True, log[witness].time
            part = log[witness].column(name)[(time > start - 0.1) & (time < end + 0.1)]
            if len(part) > 1 and np.ptp(part) > MOVED:
                return True
    return not seen


def _coarse(signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    if signal.name == "q" and np.ptp(values) >= MOVED and (step := quantum([values])) > COARSE:
        text = f"q of {name} has a resolution of only {step:.4g} rad ({np.degrees(step):.2g} deg)"
        yield Finding("quantised", WARNING, text, "q", name, value=step, unit="rad")


def _spiking(signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    """Single samples far from both neighbours, and further than anything else in the channel."""
    if signal.name not in SPIKE:
        return
    middle = np.abs(values[1:-1] - 0.5 * (values[:-2] + values[2:]))
    sides = np.abs(values[2:] - values[:-2])
    jump = np.minimum(np.abs(values[1:-1] - values[:-2]), np.abs(values[1:-1] - values[2:]))
    usual = float(np.percentile(middle, 99))
    spikes = np.flatnonzero((jump > SPIKE[signal.name]) & (jump > 6 * usual) & (jump > 4 * sides)) + 1
    if len(spikes):
        worst = spikes[np.argmax(middle[spikes - 1])]
        size, time = float(middle[worst - 1]), signal.time[worst]
        count = "a single sample jumps" if len(spikes) == 1 else f"{len(spikes)} single samples jump"
        text = f"{signal.name} of {name}: {count} away and back, by {size:.3g} {signal.unit} at {time:.3f} s"
        yield Finding("spike", WARNING, text, signal.name, name, time, time, size, signal.unit)


def _chattering(signal: Signal, name: str, values: np.ndarray) -> Iterator[Finding]:
    if np.ptp(values) >= CHATTERS.get(signal.name, np.inf) and (share := chatter(values)):
        ends = f"between {values.min():.3g} and {values.max():.3g} {signal.unit}"
        text = f"{signal.name} of {name} chatters {ends} from one sample to the next: do not trust what is fitted to it"
        yield Finding("chatter", WARNING, text, signal.name, name, value=share, unit="1")


def _runs(values: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """First and last index of stretches that stay within the tolerance of where they began."""
    if tolerance == 0.0:
        cuts = np.flatnonzero(np.diff(values) != 0)
        return np.concatenate([[0], cuts + 1]), np.concatenate([cuts, [len(values) - 1]])
    starts = [0]
    for i, value in enumerate(values.tolist()):
        if abs(value - values[starts[-1]]) > tolerance:
            starts.append(i)
    return np.array(starts), np.array([*(i - 1 for i in starts[1:]), len(values) - 1])
