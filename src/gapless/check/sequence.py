"""Signals to observation: successive frames must agree with each other as motion does, whatever simulator they come from."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.check.finding import FAIL, PASS, SIGNALS, SKIP, Check
from gapless.check.frames import FEW, Signals, frame_columns, signals_of
from gapless.policy import Contract, clipped, processed
from gapless.robots import RobotModel

DEGREES = math.degrees(1.0)
FACTOR = 1.4
"""Ratio to what was expected beyond which a scale or period is another one; impacts between two frames make 10 to 20 %."""
UNEVEN = 3.0
"""The same of one axis of the gyro beside another; shaking makes 1.5."""
RELATED = 0.6
"""Correlation below which frames tell nothing of a relation; clean walking has 0.9 and more."""


def history(contract: Contract, observation: Array) -> Iterator[Check]:
    """Older frames of an observation are the newest ones of those before it."""
    layout = contract.observation
    if all(t.history == 1 for t in layout.terms) or len(observation) < FEW:
        return
    off = {}
    for major, order in itertools.product(("term", "frame"), ("oldest_first", "newest_first")):
        other = replace(contract, observation=replace(layout, major=major, order=order))
        new, old = frame_columns(other, 0), frame_columns(other, 1)
        pairs = [(a, b) for name in old for a, b in zip(new[name], old[name], strict=True)]
        late, early = (np.array(c) for c in zip(*pairs, strict=True))
        spread = observation.std() + 1e-9
        off[major, order] = float(np.mean(np.abs(observation[1:, early] - observation[:-1, late]) > 1e-3 * spread))
    stated, best = off[layout.major, layout.order], min(off, key=lambda k: off[k])
    if off[best] > 0.2:
        yield Check("history", SIGNALS, SKIP, "The frames do not follow one another, so they say nothing of history.")
    elif (missing := empty_frames(contract, observation)) > 0:
        sentence = f"The {missing} oldest frames of the history stay zero: it is shorter than the network's."
        yield Check("history", SIGNALS, FAIL, sentence, missing, 0, "frames", "Keep as many frames as training did.")
    elif stated <= off[best] + 0.05:
        yield Check("history", SIGNALS, PASS, "Each observation repeats the one before it as the contract says.", stated, 0.2)
    else:
        name = "history order" if best[0] == layout.major else "history layout"
        words = f"{'term by term' if best[0] == 'term' else 'frame by frame'}, {best[1].replace('_', ' ')}"
        sentence = (
            f"Frames follow one another if the history goes {words}; {100 * stated:.0f} % differ as the contract reads it."
        )
        yield Check(name, SIGNALS, FAIL, sentence, stated, 0.2, fix=f"Set observation.major = {best[0]}, order = {best[1]}.")


def empty_frames(contract: Contract, observation: Array) -> int:
    """How many of the oldest frames of the history never fill, though a run had time to fill them."""
    deepest = max(t.history for t in contract.observation.terms)
    late, missing = observation[min(deepest, len(observation) // 2) :], 0
    for age in range(deepest - 1, 0, -1):
        columns = [c for each in frame_columns(contract, age).values() for c in each]
        if late[:, columns].any():
            break
        missing += 1
    return missing


def last_action(contract: Contract, signals: Signals, action: Array) -> Iterator[Check]:
    """What is shown as last action is the action of the period before, in the form that the contract says."""
    if "last_action" not in signals or len(action) < FEW or contract.action.scale is None or contract.action.offset is None:
        return
    chosen = [contract.action.joints.index(j) for j in signals.joints["last_action"]]
    shown, stated = signals["last_action"], contract.observation.last_action
    forms = {"raw": np.asarray(action, float), "clipped": clipped(contract, action), "processed": processed(contract, action)}
    given = forms[stated][:, chosen]
    off = {lag: _away(shown[lag:], given[: len(given) - lag]) for lag in (1, 0, 2, 3)}
    if off[1] < 0.05:
        yield Check("last action", SIGNALS, PASS, "The last action that is shown is the one that was given.", off[1], 0.05)
        return
    other = next((f for f, values in forms.items() if _away(shown[1:], values[:-1, chosen]) < 0.05), None)
    if other == "raw" and stated == "clipped":
        sentence = "The last action is shown beyond the clip, which was another one in training, or acted on targets only."
        fix = "Compare action.clip with training, or set observation.last_action = raw."
        yield Check("action clip", SIGNALS, FAIL, sentence, off[1], 0.05, fix=fix)
        return
    if other is not None:
        sentence = f"The last action is shown {other}, and the contract says {stated}."
        yield Check("last action", SIGNALS, FAIL, sentence, off[1], 0.05, fix=f"Set observation.last_action = {other}.")
        return
    lag = min(off, key=lambda k: off[k])
    if off[lag] < 0.05:
        sentence = f"The last action that is shown is {lag} periods old, not one."
        yield Check("lagged observation", SIGNALS, FAIL, sentence, lag, 1, "periods", "Show the newest action.")
        return
    ratio = float((shown[1:] * given[:-1]).sum() / max((given[:-1] ** 2).sum(), 1e-12))
    if _away(shown[1:], ratio * given[:-1]) < 0.05 * abs(ratio) and abs(ratio) > 1e-3:
        name = "sign" if ratio < 0 else "observation scale"
        sentence = f"The last action is shown {ratio:.3g} times as large as the contract's scale makes it."
        yield Check(name, SIGNALS, FAIL, sentence, ratio, 1.0, fix="Correct the term's scale.")


def _away(a: Array, b: Array) -> float:
    return float(np.nanmean(np.abs(a - b)) / (np.nanstd(b) + 1e-9))


def gravity(contract: Contract, signals: Signals) -> Iterator[Check]:
    """Gravity has length one, and points down on a robot that mostly stands."""
    if "gravity" not in signals:
        return
    shown = signals["gravity"]
    length = float(np.nanmedian(np.linalg.norm(shown, axis=1)))
    if not 0.9 < length < 1.1:
        sentence = f"The gravity term has the length {length:.3g}, not 1."
        fix = "Correct the term's scale: it shows a direction."
        yield Check("observation scale", SIGNALS, FAIL, sentence, length, 1.0, fix=fix)
        return
    mean = np.nanmean(shown, axis=0)
    towards = float(mean @ np.asarray(contract.conventions.gravity) / max(float(np.linalg.norm(mean)), 1e-9))
    if towards < -0.7:
        sentence = f"Gravity points up: ({mean[0]:.2f}, {mean[1]:.2f}, {mean[2]:.2f})."
        yield Check(
            "gravity sign", SIGNALS, FAIL, sentence, towards, 0.5, fix="Negate the gravity term, or conventions.gravity."
        )
    elif towards < 0.5:
        sentence = f"Gravity points to ({mean[0]:.2f}, {mean[1]:.2f}, {mean[2]:.2f}) on a robot that should be upright."
        fix = "Is the quaternion w first, and the IMU's frame that of the base?"
        yield Check("quaternion order", SIGNALS, FAIL, sentence, towards, 0.5, fix=fix)
    else:
        yield Check("gravity", SIGNALS, PASS, "Gravity has length one and points down.", towards, 0.5)


def turning(signals: Signals, dt: float) -> tuple[float, float, Array] | None:
    """How gravity turns against what the gyro says: factor on the gyro, correlation, and the signed axes that fit best.

    The world's axis turns by dg/dt = -w x g; of all signed permutations of the gyro's axes the best one is returned, None
    where the robot hardly turns.
    """
    if "gyro" not in signals or "gravity" not in signals:
        return None
    g, w = signals["gravity"], signals["gyro"]
    known = np.isfinite(g).all(axis=1) & np.isfinite(w).all(axis=1)
    known = np.atleast_1d(known)
    pairs = known[1:] & known[:-1]
    change, middle, rate = (g[1:] - g[:-1])[pairs], ((g[1:] + g[:-1]) / 2)[pairs], ((w[1:] + w[:-1]) / 2)[pairs]
    if len(change) < FEW or np.std(change) < 1e-4:
        return None

    def fit(axes: Array) -> tuple[float, float]:
        predicted = -dt * np.cross(rate @ axes.T, middle)[:, :2]
        seen = change[:, :2]
        size = float((predicted**2).sum())
        both = float((predicted * seen).sum())
        return both / max(size, 1e-12), both / max(math.sqrt(size * float((seen**2).sum())), 1e-12)

    candidates = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            axes = np.zeros((3, 3))
            axes[np.arange(3), order] = signs
            candidates.append((*fit(axes), axes))
    straight = next(c for c in candidates if np.array_equal(c[2], np.eye(3)))
    best = max(candidates, key=lambda c: c[1])
    return straight if straight[1] > 0.9 * best[1] else best


def uneven_gyro(signals: Signals, dt: float) -> Check | None:
    """A gyro one of whose axes has another factor than the others, by how gravity turns: dg/dt = -(S w) x g with S diagonal."""
    if "gyro" not in signals or "gravity" not in signals:
        return None
    g, w = signals["gravity"], signals["gyro"]
    middle, rate, change = (g[1:] + g[:-1]) / 2, (w[1:] + w[:-1]) / 2, g[1:] - g[:-1]
    known = np.isfinite(np.hstack([middle, rate, change])).all(axis=1)
    if known.sum() < FEW:
        return None
    each = [-dt * np.cross(rate[known] * axis, middle[known]).ravel() for axis in np.eye(3)]
    matrix, wanted = np.array(each).T, change[known].ravel()
    factors, *_ = np.linalg.lstsq(matrix, wanted, rcond=None)
    left = float(np.var(wanted - matrix @ factors))
    doubt = np.sqrt(left * np.diag(np.linalg.pinv(matrix.T @ matrix)))
    if left > (1 - RELATED) * float(np.var(wanted)):
        return None
    # the heading turns gravity only where the robot leans, so z is not judged
    sure = [float(factors[i]) for i in range(2) if abs(factors[i]) > 5 * doubt[i] and np.std(rate[known, i]) > 0]
    if len(sure) < 2 or all(map(_off, sure)) or not any(f < 0 or abs(math.log(f)) > math.log(UNEVEN) for f in sure):
        return None
    axis = int(np.argmax([_off(f) for f in sure]))
    factor = sure[axis]
    degrees = factor > 0 and min(abs(math.log(factor * DEGREES)), abs(math.log(factor / DEGREES))) < math.log(FACTOR)
    name = "sign" if factor < 0 else "degrees" if degrees else "observation scale"
    sentence = f"Gravity turns {factor:.3g} times as fast about {'xy'[axis]} as the gyro says, and as fast about {'yx'[axis]}."
    return Check(name, SIGNALS, FAIL, sentence, factor, FACTOR, fix=f"Correct the gyro's {'xy'[axis]}.")


def rolling(signals: Signals, dt: float) -> tuple[float, float, int] | None:
    """How positions change against the speeds shown: factor on the speeds, correlation, and by how many periods speeds lag."""
    if "q" not in signals or "dq" not in signals:
        return None
    shared = [j for j in signals.joints["q"] if j in signals.joints["dq"]]
    q, dq = (signals[k][:, [signals.joints[k].index(j) for j in shared]] for k in ("q", "dq"))
    best: tuple[float, float, int] | None = None
    for lag in (0, 1, -1, 2, -2):
        # positive: the speeds shown belong to an earlier moment
        early, late = max(0, -lag), max(0, lag)
        n = len(q) - abs(lag)
        moved = q[early : early + n][1:] - q[early : early + n][:-1]
        mean = (dq[late : late + n][1:] + dq[late : late + n][:-1]) / 2
        known = np.isfinite(moved) & np.isfinite(mean)
        if known.sum() < FEW or np.std(moved[known]) < 1e-6:
            continue
        a, b = moved[known], dt * mean[known]
        both = float((a * b).sum())
        found = both / max(float((b * b).sum()), 1e-12), both / max(math.sqrt(float((a * a).sum() * (b * b).sum())), 1e-12), lag
        if best is None or abs(found[1]) > abs(best[1]) + 0.03:
            best = found
    return best


def misread(signals: Signals, dt: float) -> bool:
    """Whether gravity turns as from a quaternion read in another order: with the pitch rate, but not with the roll rate.

    Read x first, gravity's x comes out negated, and its y as that of the heading.
    """
    if "gyro" not in signals or "gravity" not in signals:
        return False
    g, w = signals["gravity"], signals["gyro"]
    if np.nanstd(w[:, 0]) < 0.05 or np.nanstd(w[:, 1]) < 0.05:
        return False
    middle, rate = (g[1:] + g[:-1]) / 2, (w[1:] + w[:-1]) / 2
    turned = -dt * np.cross(rate, middle)
    seen = g[1:] - g[:-1]
    known = np.isfinite(turned).all(axis=1) & np.isfinite(seen).all(axis=1)
    if known.sum() < FEW or np.std(seen[known, 0]) < 1e-6:
        return False
    pitch, roll = (abs(np.corrcoef(turned[known, i], seen[known, i] + 1e-12 * np.arange(known.sum()))[0, 1]) for i in (0, 1))
    return bool(pitch > RELATED and roll < 0.4)


def motion(contract: Contract, signals: Signals) -> Iterator[Check]:
    """Speeds are the change of positions, and the gyro is the turning of gravity: scale, sign, unit, lag, axes and period."""
    dt = contract.timing.control_dt
    if dt is None:
        return
    if misread(signals, dt):
        sentence = (
            "Gravity follows the pitch rate of the gyro, but not its roll rate, as from a quaternion read in another order."
        )
        yield Check(
            "quaternion order",
            SIGNALS,
            FAIL,
            sentence,
            fix="Read the quaternion w first (or last): compare with the IMU's manual.",
        )
        return
    turn, roll = turning(signals, dt), rolling(signals, dt)
    if roll and roll[2] and abs(roll[1]) > RELATED:
        sentence = f"Joint speeds belong to positions {abs(roll[2])} periods {'before' if roll[2] > 0 else 'after'} them."
        yield Check("lagged observation", SIGNALS, FAIL, sentence, abs(roll[2]), 0, "periods", "Read both at one moment.")
        return
    factor = {
        "gyro": turn[:2] if turn and turn[1] > RELATED else None,
        "dq": roll[:2] if roll and abs(roll[1]) > RELATED else None,
    }
    if (uneven := uneven_gyro(signals, dt)) is not None:
        yield uneven
        return
    if turn and turn[1] > RELATED and not np.array_equal(turn[2], np.eye(3)):
        yield _axes(turn[2], turn[1])
        return
    both = [f[0] for f in factor.values() if f is not None and _off(*f)]
    if len(both) == 2 and not _off(both[0] / both[1]):
        right = 1e3 * dt * float(np.mean(both))
        fast = f"{np.mean(both):.2g} times as fast as in {1e3 * dt:g} ms"
        sentence = f"Positions and orientation change {fast}: the period was {right:.3g} ms."
        yield Check("period", SIGNALS, FAIL, sentence, right, 1e3 * dt, "ms", f"Set timing.control_dt to {right / 1e3:.3g} s.")
        return
    for kind, found in factor.items():
        if found is None:
            continue
        f = found[0]
        if not _off(*found):
            yield Check(f"{kind} against motion", SIGNALS, PASS, f"The motion is {f:.2f} times what {kind} says.", f, FACTOR)
        elif f < 0:
            yield Check("sign", SIGNALS, FAIL, f"{kind} has the wrong sign.", f, 1.0, fix=f"Negate the term of kind {kind}.")
        else:
            degrees = min(abs(math.log(f * DEGREES)), abs(math.log(f / DEGREES))) < math.log(FACTOR)
            name = "degrees" if degrees else "observation scale"
            sentence = f"The motion is {f:.3g} times what {kind} says" + (": it is in degrees." if degrees else ".")
            yield Check(name, SIGNALS, FAIL, sentence, f, FACTOR, fix=f"Correct the scale or unit of the term of kind {kind}.")


def _off(factor: float, related: float = 1.0) -> bool:
    """Whether a factor on the speeds is another one than 1, by whatever noise in speeds and in positions makes of it.

    Regressed on noisy speeds it comes out too small, by the square of the correlation at most where all noise is theirs.
    """
    return factor <= 0 or abs(math.log(np.clip(1.0, factor, factor / related**2))) > math.log(FACTOR)


def _axes(axes: Array, related: float) -> Check:
    words = ", ".join(("" if s > 0 else "-") + "xyz"[int(np.argmax(np.abs(row)))] for row in axes for s in [row.sum()])
    sentence = f"Gravity turns as if the gyro's axes were ({words})."
    if np.array_equal(np.abs(axes), np.eye(3)) and axes[0, 0] == axes[1, 1] == -1:
        fix = "Read the quaternion w first; or the IMU is turned by 180 degrees about z."
        return Check("quaternion order", SIGNALS, FAIL, sentence, related, RELATED, fix=fix)
    name = "IMU frame" if np.linalg.det(axes) > 0 else "sign"
    return Check(name, SIGNALS, FAIL, sentence, related, RELATED, fix="Give gyro and gravity in the base's axes.")


def ranges(contract: Contract, signals: Signals, robot: RobotModel | None) -> Iterator[Check]:
    """Positions are within the joints' limits."""
    if robot is None or "q" not in signals:
        return
    low, high = np.array([robot.ranges.get(j, (-np.inf, np.inf)) for j in signals.joints["q"]]).T
    q = signals["q"]
    spare = 0.1 + 0.05 * np.where(np.isfinite(high - low), high - low, 0.0)
    outside = (q < low - spare) | (q > high + spare)
    share = float(np.mean(outside[np.isfinite(q)]))
    if share <= 0.02:
        yield Check("joint limits", SIGNALS, PASS, "All positions that were shown are within the joints' limits.", share, 0.02)
        return
    worst = signals.joints["q"][int(np.argmax(outside.mean(axis=0)))]
    degrees = float(np.nanmax(np.abs(q))) > 2 * math.tau
    sentence = f"{100 * share:.0f} % of the positions are beyond the joints' limits, those of {worst} most often."
    fix = "Positions are in rad." if degrees else "Compare joint order and default pose with training."
    yield Check("degrees" if degrees else "joint limits", SIGNALS, FAIL, sentence, share, 0.02, fix=fix)


def judge(contract: Contract, observation: Array, action: Array | None, robot: RobotModel | None) -> list[Check]:
    """All that successive observations (frames, width), and the actions given in them, say of their contract."""
    checks = list(history(contract, observation))
    if any(c.status == FAIL for c in checks):
        return checks
    signals = signals_of(contract, observation)
    if action is not None:
        checks += last_action(contract, signals, action)
    dt = contract.timing.control_dt
    pointing = () if dt is not None and misread(signals, dt) else gravity(contract, signals)
    return [*checks, *pointing, *motion(contract, signals), *ranges(contract, signals, robot)]
