"""What to do next: one sentence a cause, from its own figures; what would tell apart what a log cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

DO = {
    "latency.action": "put a delay of {value} into the model; `gapless fit` finds it to a millisecond",
    "gains.kp": "set kp to {value} ({ratio} the model's {nominal}), or find out what the firmware's unit is",
    "gains.kd": "set kd to {value} ({ratio} the model's {nominal})",
    "motor.strength": "scale the drive's torque by {value}: check the torque constant and the supply voltage",
    "motor.limit": "set the torque limit to {value} ({ratio} the model's {nominal}): check the drive's current limit",
    "motor.no_load_speed": "set the no-load speed to {value}: check the supply voltage",
    "motor.kt": "set the torque constant to {value} ({ratio} the model's {nominal})",
    "motor.resistance": "set the winding's resistance to {value} ({ratio} the model's {nominal})",
    "motor.voltage": "set the supply voltage to {value}; log it, since it sags under load",
    "friction.viscous": "set joint damping to {value}, or identify it with a chirp up to the speeds of the task",
    "friction.coulomb": "set friction loss to {value}, or identify it with slow triangles; randomise it by a factor of 2",
    "friction.stribeck": "identify Stribeck friction with slow triangles (`gapless fit` climbs to it), or learn a residual",
    "friction.load": "identify friction with load: move with and without a payload (`gapless fit` climbs to it)",
    "friction.angle": "identify friction over the joint's whole range (`gapless fit` climbs to it); look at the gear",
    "armature.inertia": "set the armature to {value} ({ratio} the model's {nominal}): rotor times gear ratio squared",
    "inertia.mass": "weigh the links; the model's masses are off by {ratio}",
    "inertia.com": "weigh the robot in several poses: centres of mass are not where the model has them",
    "inertia.payload": "put {value} more onto the model, or take it off the robot; randomise over what the robot will carry",
    "offset.encoder": "calibrate the encoder zeros, or take {value} off the readings",
    "offset.imu": "level the IMU, or take its tilt out of the readings",
    "disturbance.cable": "guide the cables elsewhere, or model a spring of {value}",
    "backlash.width": "repair or preload the gear; else model a play of {value} and randomise it",
    "flex.stiffness": "model a spring of {value} in series with the drive; stiffen the joint if it should not be there",
    "contact.friction": "set the floor's friction to {value} and randomise it widely: it is never the same twice",
    "contact.stiffness": "set the contact's stiffness to {value} times the model's, and randomise it",
    "contact.damping": "set the contact's damping to {value} times the model's, and randomise it",
    "contact.slope": "level the floor, or tilt the model's",
}
SEPARATES = {
    frozenset({"gains.kd", "friction.viscous"}): "log motor torque, or move so fast that the torque limit bites",
    frozenset({"latency.action", "gains.kd"}): "move faster: a chirp up to 6 Hz",
    frozenset({"inertia.payload", "offset.encoder"}): "move faster, or hold several poses",
    frozenset({"inertia.com", "offset.encoder"}): "move faster, or hold several poses",
    frozenset({"gains.kp", "motor.strength"}): "command jumps so large that the torque limit bites, or log motor torque",
    frozenset(
        {"backlash.width", "flex.stiffness"}
    ): "load the joint from one side, then move: play is then gone, a spring is not",
    frozenset({"inertia.mass", "armature.inertia"}): "hold several poses: gravity sees links, not rotors",
}


def sentence(cause: str, joints: Sequence[str], values: Mapping[str, tuple[float, float, str]]) -> str:
    """What to do about a cause. values: name to found, nominal and unit, of what is beyond its tolerance."""
    where = f" of {', '.join(joints)}" if joints else ""
    if not values:
        return f"identify {cause}{where}"
    found, nominal = (np.array([v[i] for v in values.values()], float) for i in (0, 1))
    unit = next(iter(values.values()))[2]
    middle = float(np.median(found))
    spread = f" (from {found.min():.3g} to {found.max():.3g})" if len(found) > 1 and np.ptp(found) > 0.2 * abs(middle) else ""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = found / nominal
    ratio = f"{float(np.median(ratios)):.2g} times" if np.isfinite(ratios).all() else "away from"
    words = DO.get(cause, "set {name} to {value}")
    text = words.format(
        value=f"{middle:.3g} {unit}".strip() + spread, nominal=f"{float(np.median(nominal)):.3g}", ratio=ratio, name=cause
    )
    return f"{cause}{where}: {text}"


def separating(cause: str, group: Sequence[str]) -> list[str]:
    """What would tell a cause from those that the log cannot tell it from."""
    out = []
    for other in group:
        how = SEPARATES.get(frozenset({cause, other}), "record richer motion: fast, slow, large jumps, with and without load")
        out.append(f"to tell {cause} from {other}: {how}")
    return out
