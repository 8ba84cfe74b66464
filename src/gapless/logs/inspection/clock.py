"""Clocks: time that runs backwards, stands still, changes its unit, jitters or has gaps; clocks that disagree."""

from collections.abc import Iterator

import numpy as np

from gapless.logs.inspection.finding import ERROR, WARNING, Finding
from gapless.logs.log import Log, Signal, by_clock

JITTER = 0.25
"""Largest deviation from the median period, at the 95th percentile, as a share of the period."""
COARSE = 0.5
"""Share of samples that repeat a time, from which on nobody knows when they were taken."""
GAP = 4.0
"""Periods; a longer pause is a gap."""
PLAUSIBLE = (0.5, 20_000.0)
"""Hz; outside of this range the unit of time is in doubt."""
SLOWEST = 5.0
"""Hz; no motion of a joint can be seen in fewer positions, velocities or torques, so that the unit of time is in doubt too."""
SHORTEST = 4.0
"""s of all logs together that a fit or an explanation needs: one half to learn from, the other to test on."""
UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
DRIFT = 1e-3
"""Seconds a second between the device's and the host's clock."""


def clock_findings(log: Log) -> Iterator[Finding]:
    """What is wrong with the times of a log."""
    for signals in by_clock(log):
        names = ", ".join(s.name for s in signals)
        yield from _periods(names, signals[0])
        yield from _two_clocks(names, signals[0])
    yield from _overlap(log)
    if 0 < log.duration < SHORTEST - 0.1:
        text = f"the log lasts only {log.duration:.2g} s; gap and fit need at least {SHORTEST:g} s of motion, all logs together"
        yield Finding("short", WARNING, text, value=log.duration, unit="s")


def _periods(names: str, signal: Signal) -> Iterator[Finding]:
    time = signal.time
    if len(time) < 3:
        yield Finding("too_short", ERROR, f"{names}: only {len(time)} samples", names, value=len(time), unit="samples")
        return
    periods = np.diff(time)
    back = np.flatnonzero(periods < 0)
    if len(back):
        text = f"{names}: time runs backwards {_times(len(back))}, first by {-periods[back[0]]:.4g} s after sample {back[0]}"
        yield Finding("time_backwards", ERROR, text, names, start=time[back[0]], value=float(len(back)), unit="times")
    still = np.flatnonzero(periods == 0)
    if len(still):
        coarse = len(still) > COARSE * len(periods)
        text = f"{names}: {len(still)} samples repeat the time of the one before, first sample {still[0] + 1}"
        text += ": log times with more digits, and one row a time" if coarse else ""
        yield Finding(
            "time_repeats",
            ERROR if coarse else WARNING,
            text,
            names,
            start=time[still[0]],
            value=float(len(still)),
            unit="samples",
        )
    forward = periods[periods > 0]
    if len(forward) == 0:
        yield Finding("time_stands_still", ERROR, f"{names}: time never advances", names)
        return
    middle = float(np.median(forward))
    mixed = _mixed(periods, middle)
    if mixed is not None:
        first, factor = mixed
        text = f"{names}: after sample {first} the period changes by a factor of {factor:g}: two units of time are mixed"
        yield Finding("time_units_mixed", ERROR, text, names, start=time[first], value=factor)
        return
    rate = 1 / middle
    slowest = SLOWEST if {"q", "dq", "tau"} & set(names.split(", ")) else PLAUSIBLE[0]
    if not slowest <= rate <= PLAUSIBLE[1]:
        guess = next((u for u, f in UNITS.items() if 5 <= rate / f <= 5000), None)
        hint = f"is the time in {guess}?" if guess else "check the unit of time"
        text = f"{names}: {rate:.3g} samples a second is implausible; {hint}"
        yield Finding("time_unit", ERROR, text, names, value=rate, unit="Hz")
    jitter = float(np.percentile(np.abs(forward - middle), 95))
    if jitter > JITTER * middle:
        text = f"{names}: the period of {middle * 1e3:.3g} ms jitters by {jitter * 1e3:.2g} ms (95 % of samples)"
        yield Finding("jitter", WARNING, text, names, value=jitter, unit="s")
    gaps = np.flatnonzero(periods > GAP * middle)
    if len(gaps) and len(back) == 0:
        longest = gaps[np.argmax(periods[gaps])]
        start, end = time[longest], time[longest + 1]
        text = f"{names}: {_times(len(gaps))} no sample for more than {GAP:g} periods, longest gap {end - start:.3g} s"
        yield Finding("gap", WARNING, text, names, start=start, end=end, value=float(end - start), unit="s")


def _mixed(periods: np.ndarray, middle: float) -> tuple[int, float] | None:
    """First sample and factor of a run of periods that are a power of 1000 times the usual ones."""
    ratio = np.log10(np.where(periods > 0, periods, middle) / middle) / 3
    power = np.rint(ratio)
    strange = (power != 0) & (np.abs(ratio - power) < 0.05)
    runs = strange[:-2] & strange[1:-1] & strange[2:] & (power[:-2] == power[1:-1])
    return (int(np.argmax(runs)), float(1000.0 ** power[int(np.argmax(runs))])) if runs.any() else None


def _two_clocks(names: str, signal: Signal) -> Iterator[Finding]:
    if signal.host_time is None or len(signal.time) < 10:
        return
    host, device = signal.host_time, signal.time
    back = np.flatnonzero(np.diff(host) < 0)
    if len(back):
        text = f"{names}: the host's clock runs backwards {_times(len(back))}, first after sample {back[0]}"
        yield Finding("host_time_backwards", ERROR, text, names, start=device[back[0]], value=float(len(back)))
    span = device[-1] - device[0]
    if span > 0:
        drift = float(np.polyfit(device - device[0], host - host[0], 1)[0]) - 1
        if abs(drift) > DRIFT:
            text = f"{names}: the host's clock gains {drift * 1e3:.3g} ms a second on the device's"
            yield Finding("clock_drift", WARNING, text, names, value=drift, unit="s/s")


def _overlap(log: Log) -> Iterator[Finding]:
    spans = {n: (s.time.min(), s.time.max()) for n, s in log.signals.items() if len(s.time) > 1}
    for name, (start, end) in spans.items():
        for other, (begin, finish) in spans.items():
            shorter = min(end - start, finish - begin)
            shared = min(end, finish) - max(start, begin)
            if name < other and shorter > 0 and shared < 0.5 * shorter:
                text = f"{name} runs from {start:.6g} to {end:.6g} s, {other} from {begin:.6g} to {finish:.6g} s: not one clock"
                yield Finding("clocks_apart", ERROR, text, f"{name}, {other}", value=float(shared), unit="s")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
