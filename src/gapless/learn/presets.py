"""Presets of randomisation: what the worlds of a training are drawn from."""

from collections.abc import Mapping

import numpy as np

from gapless.errors import BadInput, must_exist
from gapless.twin import Belief, Box, Particles, Plain, Point, Twin, combined, quantities

NONE = 1e-6
"""Of a real mismatch: a model that has less of a thing has none (the full friction model needs a trace of it)."""
PRESETS = ("none", "narrow", "informed", "wide", "models30")


def draw_from(preset: str, twin: Twin, belief: Plain | None = None, lot: int = 0) -> Belief | None:
    """What worlds are drawn from: a preset by name, around what is believed about the robot where that is given.

    `none` is the nominal robot, or the belief's mean; `narrow` is the belief; `informed` is the belief, and the ranges of the
    field for all that it does not speak of; `wide` are those ranges alone (each mechanism states its own, with the source);
    `models30` are 30 robots drawn once around the nominal one (Hwangbo et al. 2019): lot 0 is a training's, lot 1 those on
    which its checkpoints are compared, any other nobody has met.
    """
    must_exist("preset", [preset], PRESETS)
    if belief is not None:
        twin.accepts(belief.space)
    if preset == "none":
        return None if belief is None else Point(belief.space, belief.mean())
    if preset in ("narrow", "informed"):
        if belief is None:
            raise BadInput(f"the preset {preset} draws from a belief: give one with --belief, or use wide")
        return belief if preset == "narrow" else combined(belief, box_belief(twin, quantities.ranges("wide")))
    if preset == "wide":
        return box_belief(twin, quantities.ranges(preset))
    drawn = box_belief(twin, quantities.ranges(preset))
    return Particles(drawn.space, drawn.sample(30, np.random.default_rng(30 + lot)), np.full(30, 1 / 30))


def box_belief(twin: Twin, ranges: Mapping[str, tuple[str, float, float]]) -> Box:
    """The box that a table of ranges means for a robot; what the robot does not have is left out.

    Args:
        twin: the robot.
        ranges: quantity to how it is drawn, low and high; see `gapless.twin.mechanism.Quantity.ranges`.
    """
    ends: dict[str, tuple[float, float]] = {}
    for p in twin.space.parameters:
        how, low, high = ranges.get(p.quantity, ("", 0.0, 0.0))
        if p.quantity not in ranges or (how == "base" and p.name != f"{p.quantity}/{twin.base}"):
            continue
        by, of = {
            "x": (p.nominal, 0.0),
            "+": (1.0, p.nominal),
            "scale": (p.scale, p.nominal),
            "base": (p.scale, p.nominal),
            "of mass": (twin.mass, 0.0),
            "": (1.0, 0.0),
        }[how]
        absent = how == "x" and p.nominal <= NONE * p.scale
        ends[p.name] = (0.0, p.scale) if absent else (of + by * low, of + by * high)
    space = twin.space.select(*ends)
    low_ends, high_ends = np.array([ends[name] for name in space.names]).T
    return Box(space, space.clip(low_ends), space.clip(high_ends))
