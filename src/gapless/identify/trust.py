"""Whether a fit is to be trusted, and what in the logs speaks against it; in sentences."""

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.arrays import Array
from gapless.identify.score import Scores
from gapless.logs import Log, chatter
from gapless.measure import Split, Trace, floors
from gapless.twin import Gaussian, quantities

WORSE = 3.0  # times the usual error: a log that contradicts the others
MISSING = 2.0  # times the noise of the encoder: a model that leaves more lacks something
POOR = 0.3  # of how much the joints move: a model that leaves this much of it is not adequate


def doubts(
    logs: Sequence[Log],
    held: Scores,
    traced: Sequence[Trace],
    left_out: Mapping[str, Sequence[int]],
    belief: Gaussian,
    zeros: Mapping[int, Array],
    split: Split,
) -> tuple[list[str], bool]:
    """What speaks against a fit, in sentences, and whether it can be trusted all the same."""
    out: list[str] = []
    fatal = _chatter(logs, traced[0].joints)
    baselines = {"the model as given": held.given, "the command": held.command, "a pure delay": held.delay}
    fatal += [
        f"held out, the fit ({np.degrees(held.fit):.3g} deg) is no better than {name} ({np.degrees(e):.3g} deg)"
        for name, e in baselines.items()
        if np.isfinite(e) and not held.fit < e
    ]
    motion = np.sqrt(np.mean([np.var(t.measured, axis=0).mean() for t in traced]))
    if not held.fit < POOR * motion:
        fatal.append(
            f"held out, the fit leaves {100 * held.fit / motion:.0f} % of the motion: no friction or motor model is adequate"
        )
    out += fatal
    ratios = np.array(
        [
            np.sqrt(np.mean(np.square(np.concatenate([t.error("heldout")[:, j] for t in traced]))))
            for j in range(len(traced[0].joints))
        ]
    )
    floor = floors(logs, ["q"])["q"]
    ratios /= floor.size[[floor.columns.index(j) for j in traced[0].joints]]
    if (ratios > MISSING).any():
        j = int(ratios.argmax())
        out.append(
            f"unexplained error remains: {ratios[j]:.0f} times the noise floor on {traced[0].joints[j]}; the report shows where"
        )
    for joint, blocks in left_out.items():
        where = [split.place(b) for b in blocks[:4]]
        places = ", ".join(f"{logs[i].name} at {since:.0f} s" for i, since in where)
        more = f" and {len(blocks) - 4} more" if len(blocks) > 4 else ""
        out.append(f"{joint}: excluded, since no joint model fits it (blocked, slipped or touching?): {places}{more}")
    sizes = np.array([np.sqrt((t.error("twin") ** 2).mean()) for t in traced])
    worse = np.flatnonzero(sizes > WORSE * np.median(sizes)).tolist() if len(sizes) > 2 else []
    for i in worse:
        out.append(
            f"{traced[i].name} contradicts the other logs: its error is {np.degrees(sizes[i]):.2g} deg, "
            f"theirs is {np.degrees(np.median(sizes)):.2g} deg"
        )
    if zeros:
        spread = np.ptp(np.stack(list(zeros.values())), axis=0)
        j = int(spread.argmax())
        out.append(
            f"the encoder zero differs between logs by up to {np.degrees(spread[j]):.1f} deg: home the robot before recording"
        )
    at_bound = _at_bound(belief)
    if at_bound:
        out.append(
            f"do not rely on these, they ended at a bound: {', '.join(at_bound[:6])}{' ...' if len(at_bound) > 6 else ''}"
        )
    return out, not fatal


def _chatter(logs: Sequence[Log], joints: Sequence[str]) -> list[str]:
    """Commands that swing over much of their range and back from sample to sample; of torque drives the torque too."""
    out = []
    for log in logs:
        for signal in ("q_cmd", "tau_cmd", "tau") if "tau_cmd" in log else ("q_cmd",):
            swings = {}
            for joint in joints if signal in log else ():
                if joint not in log[signal].columns:
                    continue
                c = log[signal].column(joint)
                if chatter(c):
                    swings[joint] = f"between {c.min():.3g} and {c.max():.3g}"
            if swings:
                joint, more = next(iter(swings)), f" and {len(swings) - 1} more" if len(swings) > 1 else ""
                said = f"{signal} of {joint}{more} swings {swings[joint]} from sample to sample"
                out.append(f"{log.name}: {said}; no joint follows that")
    return out


def _at_bound(belief: Gaussian) -> list[str]:
    space = belief.space
    value = space.clip(space.from_scaled(belief.centre))
    width = 1e-6 * (space.high - space.low)
    stuck = (value - space.low < width) | (space.high - value < width)
    each = zip(space.names, stuck, space.low, strict=True)
    return [name for name, s, low in each if s and not (low == 0 and quantities.of(name).optional)]
