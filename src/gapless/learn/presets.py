"""Presets of randomisation: what the worlds of a training are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import numpy as np

from gapless.errors import BadInput, unknown
from gapless.twin import Belief, Box, Particles, Point, Twin

NONE = 1e-6
"""Of a real mismatch: a model that has less of a thing has none (the full friction model needs a trace of it)."""
PRESETS = ("none", "narrow", "wide", "models30")

# Range of each quantity: as a factor of nominal ("x"; from 0 to a real mismatch where the model has none at all), around
# nominal ("+"; "scale" in units of a real mismatch, for a centre of mass a fifth of the link's radius of gyration), as a share
# of the robot's mass, or in its own unit ("").
# Sources: the table of Tan et al. 2018 (bullet3's minitaur: mass 80-120 %, motor strength 80-120 %, friction 0.5-1.25, latency
# of the whole loop 0-40 ms, IMU bias 0.05 rad, IMU noise to 0.05 rad, both less here); Peng et al. 2018 (controller gains and
# joint damping, both less here); encoder zeros and noise: Asimov's and mjlab's. Not drawn: moments of inertia apart from
# masses, the length of a period (latency.jitter stands for it), gyro bias, stiffness of contacts.
WIDE: dict[str, tuple[str, float, float]] = {
    "inertia.mass/*": ("x", 0.8, 1.2),
    "inertia.payload": ("of mass", 0.0, 0.2),
    "inertia.com_x/BASE": ("scale", -1.5, 1.5),
    "inertia.com_y/BASE": ("scale", -1.5, 1.5),
    "inertia.com_z/BASE": ("scale", -1.5, 1.5),
    "motor.strength/*": ("x", 0.8, 1.2),
    "gains.kp/*": ("x", 0.8, 1.25),
    "gains.kd/*": ("x", 0.8, 1.25),
    "friction.viscous/*": ("x", 0.5, 2.0),
    "friction.coulomb/*": ("x", 0.5, 2.0),
    "armature.inertia/*": ("x", 0.8, 1.25),
    "contact.friction": ("", 0.5, 1.25),
    "contact.slope_roll": ("", -0.05, 0.05),
    "contact.slope_pitch": ("", -0.05, 0.05),
    "latency.action": ("", 0.0, 0.02),
    "latency.observation": ("", 0.0, 0.02),
    "latency.jitter": ("", 0.0, 0.005),
    "latency.drop": ("", 0.0, 0.02),
    "offset.encoder/*": ("", -0.02, 0.02),
    "offset.imu_roll": ("", -0.03, 0.03),
    "offset.imu_pitch": ("", -0.03, 0.03),
    "sensors.noise_q": ("", 0.0, 0.01),
    "sensors.noise_dq": ("", 0.0, 0.5),
    "sensors.noise_gyro": ("", 0.0, 0.1),
    "sensors.noise_tilt": ("", 0.0, 0.03),
    "sensors.drop": ("", 0.0, 0.02),
}
MODELS30 = {
    "inertia.mass/*": ("x", 0.85, 1.15),
    "inertia.com_x/*": ("+", -0.02, 0.02),
    "inertia.com_y/*": ("+", -0.02, 0.02),
    "inertia.com_z/*": ("+", -0.02, 0.02),
    "contact.friction": ("", 0.75, 1.15),
    "sensors.noise_q": ("", 0.0, 0.01),
    "sensors.noise_dq": ("", 0.0, 0.5),
    "sensors.noise_gyro": ("", 0.0, 0.1),
    "sensors.noise_tilt": ("", 0.0, 0.03),
}
"""Hwangbo et al. 2019: masses 15 %, centres of mass 2 cm, friction 0.95 +- 0.2; joint positions are not randomised here."""


def draw_from(preset: str, twin: Twin, belief: Belief | None = None, lot: int = 0) -> Belief | None:
    """What worlds are drawn from: a preset by name, around what is believed about the robot where that is given.

    `none` is the nominal robot, or the belief's mean; `narrow` is the belief; `wide` are the ranges of the field, whatever is
    believed; `models30` are 30 robots drawn once, around the nominal one: lot 0 is a training's, lot 1 those on which its
    checkpoints are compared, and any other nobody has met.
    """
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if belief is not None:
        twin.check_belief(belief)
    if preset == "none":
        return None if belief is None else Point(belief.space, belief.mean())
    if preset == "narrow":
        if belief is None:
            raise BadInput("the preset narrow draws from a belief: give one with --belief, or use wide")
        return belief
    if preset == "wide":
        return box_belief(twin, WIDE)
    drawn = box_belief(twin, MODELS30).sample(30, np.random.default_rng(30 + lot))
    return Particles(box_belief(twin, MODELS30).space, drawn, np.full(30, 1 / 30))


def box_belief(twin: Twin, ranges: Mapping[str, tuple[str, float, float]]) -> Box:
    """The box that a table of ranges means for a robot; what the robot does not have is left out."""
    robot = twin.robot
    base, weight = robot.base, robot.mass
    found: dict[str, tuple[float, float]] = {}
    for pattern, (how, low, high) in ranges.items():
        for p in twin.space.parameters:
            if not fnmatchcase(p.name, pattern.replace("BASE", base)):
                continue
            by, of = {
                "x": (p.nominal, 0.0),
                "+": (1.0, p.nominal),
                "scale": (p.scale, p.nominal),
                "of mass": (weight, 0.0),
                "": (1.0, 0.0),
            }[how]
            absent = how == "x" and p.nominal <= NONE * p.scale
            found[p.name] = (0.0, p.scale) if absent else (of + by * low, of + by * high)
    space = twin.space.select(*found)
    ends = np.array([found[name] for name in space.names])
    return Box(space, space.clip(ends[:, 0]), space.clip(ends[:, 1]))
