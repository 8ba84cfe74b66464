"""One joint simulated alone, with dry friction that sticks exactly: about 25 ns a step, compiled, many vectors at once.

With play or a spring between motor and link it is two masses, and takes about twice as long.
"""

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numba
import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.compiled import compiled
from gapless.delay import in_steps, mean_in_force, newest_by
from gapless.identify.per_joint.inverse_dynamics import Trajectory
from gapless.measure import FREE_WINDOW
from gapless.twin import FRICTION_SOLREF as SOLREF, LEAST_PLAY as LEAST, dry_friction

_FIELDS = {
    "kp": "gains.kp",
    "kd": "gains.kd",
    "armature": "armature.inertia",
    "viscous": "friction.viscous",
    "coulomb": "friction.coulomb",
    "stribeck": "friction.stribeck",
    "stribeck_speed": "friction.stribeck_speed",
    "load": "friction.load",
    "load2": "friction.load2",
    "angle": "friction.angle",
    "angle2": "friction.angle2",
    "delay": "latency.action",
    "offset": "offset.encoder",
    "limit": "motor.limit",
    "strength": "motor.strength",
    "kt": "motor.kt",
    "resistance": "motor.resistance",
    "voltage": "motor.voltage",
    "no_load_speed": "motor.no_load_speed",
    "play": "backlash.width",
    "stiffness": "flex.stiffness",
    "flex_damping": "flex.damping",
}
QUANTITIES = tuple(_FIELDS.values())
"""What the simulation knows, by the twin's names, in the order of its vectors.

The last four are absent at 0: no torque-speed line, no play, and a stiffness of 0 is a rigid joint. With play or stiffness
the joint is two masses: drive, friction, armature and encoder on the motor's side; inertia, load and gravity on the link's.
A twin has one or the other; with both here, the spring is behind the play.
"""
PLACE = {name: i for i, name in enumerate(QUANTITIES)}
RECORD = np.dtype([(name, np.float64) for name in _FIELDS])
"""A vector as the compiled code reads it."""

# The stop at the end of a play, as `twin.mechanisms.backlash` makes it: solref and solimp
STOP_TIME = 0.004  # s, or two steps
STOP_FIRM, STOP_FIRMEST, STOP_DEEP = 0.95, 0.99, 0.001  # "impedance" at its surface, and this deep in it [rad]
ROTOR = 1e-3  # kg m2: where the model gives none, since nothing can part without it

GAP = 0.25  # s: after a longer time without measurement the simulation starts anew


Series = namedtuple("Series", "q dq target velocity torque kp kd inertia load gravity slope")
"""What one joint felt and was told at each sample; see `Trajectory` and `DriveCommands`. Shape of each: (samples,)."""


@dataclass(frozen=True)
class Data:
    """All samples of one joint, log after log."""

    logs: Ints
    """Where each stretch of a log begins, and the end. Shape: (stretches + 1,)."""
    starts: Ints
    """Where the simulation starts from what was measured: at each stretch, and each window of a torque drive; and the end."""
    series: Series
    valid: Bools
    block: Ints
    """Number of the block that a sample belongs to, over all logs."""
    blocks: int
    """How many blocks the logs have."""
    period: Array
    """Of each stretch [s]."""
    timestep: float
    """Of the twin; the simulation's own steps are about as long, so that what is found holds there [s]."""
    home: float
    servo: bool


def gather(trajectories: Sequence[Trajectory], joint: int, home: float, servo: bool, timestep: float, blocks: int = 0) -> Data:
    """One joint's samples in several stretches of logs, which have so many blocks in all; as many as there are unless given."""

    def column(name: str) -> Array:
        parts = [getattr(c if hasattr(c, name) else c.sent, name) for c in trajectories]
        return np.ascontiguousarray(np.concatenate([part[:, joint] for part in parts]))

    logs = np.cumsum([0] + [len(c.q) for c in trajectories]).astype(np.int64)
    valid, block = (np.concatenate([getattr(c, name) for c in trajectories]) for name in ("valid", "block"))
    lost = np.flatnonzero(~valid)
    holes = np.split(lost, np.flatnonzero(np.diff(lost) > 1) + 1) if len(lost) else []
    longest = GAP / float(np.median([c.period for c in trajectories]))
    starts = [logs, np.array([h[-1] + 1 for h in holes if len(h) > longest and h[-1] + 1 < len(valid)], dtype=np.int64)]
    if not servo:
        every = [max(2, round(FREE_WINDOW / c.period)) for c in trajectories]
        starts += [np.arange(a, b - 1, step) for step, (a, b) in zip(every, pairwise(logs), strict=True)]
    return Data(
        logs=logs,
        starts=np.unique(np.concatenate(starts)),
        series=Series(*map(column, Series._fields)),
        valid=valid,
        block=block,
        blocks=blocks or int(block.max()) + 1,
        period=np.array([c.period for c in trajectories]),
        timestep=timestep,
        home=home,
        servo=servo,
    )


def without(data: Data, usable: Bools) -> Data:
    """The same samples without the blocks that are not `usable`: nothing is compared there, and what follows starts anew."""
    good = usable[data.block]
    again = np.flatnonzero(good[1:] & ~good[:-1]) + 1
    return replace(data, valid=data.valid & good, starts=np.unique(np.concatenate([data.starts, again])))


def residuals(data: Data, values: Array) -> Array:
    """Simulated minus measured position, free-running through each stretch. values: (k, quantities); shape: (k, samples)."""
    out = np.zeros((len(values), len(data.valid)))
    period = data.period[np.searchsorted(data.logs, data.starts[:-1], side="right") - 1]
    substeps = np.maximum(np.rint(period / data.timestep), 1).astype(np.int64)
    vectors = np.ascontiguousarray(values).view(RECORD)[:, 0]
    fed = bool(data.series.velocity.any() or data.series.torque.any())
    stretch = np.repeat(np.arange(len(substeps)), np.diff(data.starts))
    sent = ((np.arange(len(stretch)) - data.starts[stretch]) * substeps[stretch]).astype(np.float64)
    _run_all(vectors, data.series, sent, data.starts, substeps, period / substeps, fed, data.home, data.servo, out)
    out[:, ~data.valid] = 0.0
    return np.clip(np.nan_to_num(out, nan=1e3, posinf=1e3, neginf=-1e3), -1e3, 1e3)


# numba keeps what it compiled until this file changes: after a change of `dry_friction` or `gapless.delay`, delete __pycache__
@compiled(parallel=True)
def _run_all(vectors, s, sent, starts, substeps, dt, fed, home, servo, out):  # type: ignore[no-untyped-def]
    count = len(starts) - 1
    for job in numba.prange(len(vectors) * count):
        row, i = job // count, job % count
        _run(vectors[row], s, sent, starts[i], starts[i + 1], substeps[i], dt[i], fed, home, servo, out[row])


@compiled
def _run(p, s, sent, first, last, substeps, dt, fed, home, servo, out):  # type: ignore[no-untyped-def]
    """Steps as MuJoCo's implicitfast takes them: damping and dry friction at the end of the step, the servo's spring before.

    sent: when each sample's command was sent, in steps since the start of its stretch.
    """
    kp, kd, armature, viscous, offset = p.kp, p.kd, p.armature, p.viscous, p.offset
    limit, strength, play, stiffness = p.limit, p.strength, p.play, p.stiffness
    most, brake = 1e300, 0.0
    if p.kt > 0.0:  # the gain sets the share of the supply voltage, and back-EMF brakes
        most, brake = p.voltage * p.kt / p.resistance, p.kt * p.kt / p.resistance
        kp, kd = kp * most, kd * most
    line = limit / p.no_load_speed if p.no_load_speed > 0.0 else 0.0
    late = in_steps(p.delay, dt)
    parted = play > 0.0 or stiffness > 0.0
    half = max(0.5 * play, LEAST) if play > 0.0 else 0.0
    rotor = armature if armature > 0.0 else ROTOR
    x, v = s.q[first] - offset, s.dq[first]
    link, w = x, v
    if parted:  # the link is where its load leaves it
        borne = s.load[first] + s.inertia[first] * (s.dq[min(first + 1, last - 1)] - v) / (dt * substeps)
        steep = max(s.slope[first], 0.0)
        link -= min(max(borne / (steep + 1e-9), -half), half)
        link -= borne / (stiffness + steep) if stiffness > 0.0 else 0.0
    out[first] = 0.0
    sent, command, torques, speeds = sent[first:last], s.target[first:last], s.torque[first:last], s.velocity[first:last]
    step = newest = 0
    for k in range(first, last - 1):
        on = s.kp[k] > 0.0
        damping = kd * s.kd[k] if servo else 0.0
        for i in range(substeps):
            newest = newest_by(sent, step - late, newest)
            target = mean_in_force(sent, command, newest, step - late, 1.0)
            ahead = 0.0  # velocity and torque fed forward to a servo, as late as its target
            if fed and on:
                ahead = mean_in_force(sent, torques, newest, step - late, 1.0)
                ahead += damping * mean_in_force(sent, speeds, newest, step - late, 1.0)
            share = (i + 0.5) / substeps
            moved = s.inertia[k] + share * (s.inertia[k + 1] - s.inertia[k])
            # gravity on a joint that turns is a sine of its angle: exact however far off what is simulated is
            off = link - s.q[k] - share * (s.q[k + 1] - s.q[k])
            load = s.load[k] + share * (s.load[k + 1] - s.load[k])
            pull = load + s.gravity[k] * (math.cos(off) - 1.0) + s.slope[k] * math.sin(off)
            if servo:
                push = min(max(kp * s.kp[k] * (target - offset - x) + ahead, -most), most)
                push, damp, torque = _limited(push, damping + (brake if on else 0.0), v, viscous, limit, line)
            else:
                push = torque = strength * s.kp[k] * target
                damp = viscous
            grip = dry_friction(
                v, torque, x - home, p.coulomb, p.stribeck, p.stribeck_speed, p.load, p.load2, p.angle, p.angle2
            )
            if parted:
                v, w = _two_masses(v, w, link - x, rotor, moved, push, pull, damp, grip, half, stiffness, p.flex_damping, dt)
                x += dt * v
                link += dt * w
            else:
                den = moved + armature + dt * damp
                free = ((moved + armature) * v + dt * (push - pull)) / den
                slow = dt * grip / den
                v = free - slow if free > slow else free + slow if free < -slow else 0.0
                x += dt * v
                link = x
            step += 1
        out[k + 1] = x + offset - s.q[k + 1]


@compiled
def _limited(push, damping, v, viscous, limit, line):  # type: ignore[no-untyped-def]
    """What a servo pushes with, all damping of the joint, and the drive's torque, within its limit and torque-speed line."""
    torque = push - damping * v
    left = line * v  # what the speed takes from the torque one way and adds to it the other way
    damp = viscous + damping
    if torque > limit - left or torque < -limit - left:
        push, damp = limit if torque > limit - left else -limit, viscous + line
        torque = push - left
    if torque > limit or torque < -limit:
        push, damp = limit if torque > limit else -limit, viscous
        torque = push
    return push, damp, torque


@compiled
def _two_masses(v, w, twist, rotor, moved, push, pull, damp, grip, half, stiffness, damping, dt):  # type: ignore[no-untyped-def]
    """Speeds of motor and link after a step, as the engine finds them with a joint for each.

    Dry friction and the stop at the end of a play come first, then damping is put at the end of the step. So a play is as
    unstable as the twin's where the rotor is far lighter than a step of the motor's damping, dt (kd + viscous).
    """
    beyond = twist - half if twist > half else twist + half if twist < -half else 0.0
    reduced = rotor * moved / (rotor + moved)
    before = push - damp * v
    hold = ease = 0.0
    if stiffness > 0.0 and (beyond != 0.0 or half == 0.0):
        # what would ring faster than steps can follow is put at the end of the step as well
        hold, ease = -stiffness * beyond, damping + max(stiffness * dt - reduced / dt, 0.0)
        felt = hold - damping * (w - v)
        motor, link = _speeds(v, w, rotor, moved, before, pull, 0.0, grip, felt, 0.0, dt)
    else:
        if beyond != 0.0:
            # a joint limit ("Computation", constraint model): it is to decay in the time `soft`, and does by the share `firm`
            soft = STOP_FIRMEST * max(STOP_TIME, 2.0 * dt)
            deep = min(abs(beyond) / STOP_DEEP, 1.0)
            rise = 2.0 * deep * deep if deep < 0.5 else 1.0 - 2.0 * (1.0 - deep) * (1.0 - deep)
            firm = STOP_FIRM + rise * (STOP_FIRMEST - STOP_FIRM)
            weight = reduced * firm / (1.0 - firm)
            wanted = -2.0 / soft * (w - v) - firm / (soft * soft) * beyond
            hold, ease = weight * (wanted + (w - v) / dt), weight / dt
        motor, link = _speeds(v, w, rotor, moved, before, pull, 0.0, grip, hold, ease, dt)
        felt = hold - ease * (link - motor)
        if felt * beyond > 0.0:  # a stop pushes and never pulls
            felt = 0.0
            motor, link = _speeds(v, w, rotor, moved, before, pull, 0.0, grip, 0.0, 0.0, dt)
        hold, ease = felt, 0.0
    dry = rotor * (motor - v) / dt - before + felt
    return _speeds(v, w, rotor, moved, push + dry, pull, damp, 0.0, hold, ease, dt)


@compiled
def _speeds(v, w, rotor, moved, push, pull, damp, grip, hold, ease, dt):  # type: ignore[no-untyped-def]
    """Speeds of motor and link after a step, for a torque on the link of `hold` less `ease` times how fast they part."""
    heavy = moved + dt * ease
    carried = (moved * w + dt * (hold - pull)) / heavy  # the link's speed, were the motor to stand still
    den = rotor + dt * damp + dt * ease * moved / heavy
    still = v - v * min(2.0 * dt / SOLREF[0], 1.0)  # what dry friction brings the motor to, within its grip
    free = (rotor * v + dt * (push - hold + ease * carried)) / den - still
    slow = dt * grip / den
    v = still + (free - slow if free > slow else free + slow if free < -slow else 0.0)
    return v, carried + dt * ease / heavy * v
