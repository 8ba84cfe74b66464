"""Settings: what a fit found of each drive, lined up with its twin; values are the twin's, ranges the belief's 90 % intervals.

What logs do not determine stays at its fitted value, with its interval in a comment: the frameworks draw each number alone, and
drawn alone it would leave what the logs do say.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.files import reason
from gapless.plain import read_json
from gapless.robots import Drive, drives, is_dc_motor, torque_limit
from gapless.twin import callback, drive_law, quantities
from gapless.twin.belief import Belief, load as load_belief

FILES = ("twin.xml", "belief.json", "fit.json")
DRAWS = 4000  # of the belief, for the interval of a friction that several parameters make up


@dataclass(frozen=True)
class Number:
    """A fitted value, and the interval to draw it from; the ends are the value where it is not to be drawn."""

    value: float
    low: float
    high: float
    log: bool = False
    """Whether it is wrong by factors, and to be drawn so."""
    remark: str = ""
    slack: float = 0.0
    """By how much twin.xml, which has what fits best, may differ from fit.json, which has what is most probable: by the
    interval's width, and at will where the logs do not tell."""

    @classmethod
    def known(cls, value: float, remark: str = "") -> Number:
        """A number that is not drawn."""
        return cls(float(value), float(value), float(value), remark=remark)

    @property
    def drawn(self) -> bool:
        return self.low < self.high

    def at(self, value: float) -> Number:
        """The same number with a value that predicts best, as twin.xml has it."""
        low, high = (min(self.low, value), max(self.high, value)) if self.drawn else (value, value)
        return replace(self, value=value, low=low, high=high)

    def times(self, factor: float) -> Number:
        ends = {name: factor * getattr(self, name) for name in ("value", "low", "high", "slack")}
        return replace(self, **ends)


@dataclass(frozen=True)
class Settings:
    """All that the frameworks are told, by the twin's joint names in the order of its joints."""

    joints: dict[str, dict[str, Number]]
    """Joint to quantity: kp, kd, limit (if any), armature, viscous, and friction in motion (dry) and at rest (static)."""
    delay: Number
    """Of commands [s]."""
    step: float
    """Of the twin's physics [s]."""
    about: tuple[str, ...]
    """Paragraphs for the head of the file."""
    beyond: tuple[str, ...]
    """What was fitted and has no place in a plain PD drive with constant friction."""

    def of(self, quantity: str) -> dict[str, Number]:
        """One quantity by joint."""
        return {joint: numbers[quantity] for joint, numbers in self.joints.items() if quantity in numbers}

    def drawn(self, quantity: str) -> dict[str, Number]:
        """One quantity of the joints where it is to be drawn."""
        return {joint: n for joint, n in self.of(quantity).items() if n.drawn}


def read(folder: str | os.PathLike[str]) -> tuple[mujoco.MjModel, Belief, dict[str, Any]]:
    """The twin, the belief and the summary in a folder that `gapless fit` made."""
    folder = Path(folder)
    for name in FILES:
        if not (folder / name).is_file():
            raise BadInput(
                f"{folder} is not the folder of a fit, it has no {name}: make one with `gapless fit MODEL LOG --out DIR`"
            )
    try:
        model = mujoco.MjModel.from_xml_path(str(folder / "twin.xml"))
    except ValueError as error:
        raise BadInput(f"{folder / 'twin.xml'}: MuJoCo cannot load it ({reason(error)})") from None
    summary = read_json(folder / "fit.json")
    if not isinstance(summary.get("parameters"), dict):
        raise BadInput(f"{folder / 'fit.json'}: not the summary of a fit, it has no parameters")
    return model, load_belief(folder / "belief.json"), summary


def gather(model: mujoco.MjModel, belief: Belief, summary: Mapping[str, Any]) -> Settings:
    """Line the twin's drives up with what was fitted."""
    fitted, names = _intervals(belief, summary), quantities.exported()
    drawn = belief.sample(DRAWS, np.random.default_rng(0))
    draws = {m: drawn[:, i] for i, p in enumerate(belief.space.parameters) for m in p.members or (p.name,)}
    joints, used = {}, {names["delay"]}
    for d in sorted(drives(model), key=lambda d: d.joint):
        network = d.name in drive_law.rows(model)
        if is_dc_motor(model, d.actuator) or network or d.signal != "q":
            kind = "takes no position command" if d.signal != "q" else "has a network" if network else "has a DC motor"
            raise BadInput(f"joint {d.name!r} {kind}, and only drives with kp and kd [N m] can be exported so far")
        strength = belief.space.fixed.get(f"motor.strength/{d.name}", 1.0)
        strength *= fitted.get(f"motor.strength/{d.name}", Number.known(1.0)).value
        numbers = {}
        for quantity, value in _modelled(model, d).items():
            name, scale = f"{names[quantity]}/{d.name}", strength if quantity in ("kp", "kd", "limit") else 1.0
            number = fitted[name].times(scale) if name in fitted else Number.known(value)
            if not math.isclose(number.value, value, rel_tol=1e-3, abs_tol=max(1e-6, number.slack)):
                raise BadInput(
                    f"{name} is {number.value:g} in fit.json and {value:g} in twin.xml: they are not of the same fit"
                )
            numbers[quantity] = number.at(value)
        numbers["dry"], resting = _dry(model, d, fitted, draws, _pose(model, d, summary))
        numbers["static"] = Number.known(numbers["dry"].value + resting)
        joints[d.name] = numbers
        used |= {f"{q}/{d.name}" for q in (*names.values(), "motor.strength")}
    late = [n for name, n in fitted.items() if name.partition("/")[0] == names["delay"]]
    late = late or [Number.known(model.actuator_delay.max(initial=0.0))]
    middle = float(np.mean([n.value for n in late]))
    delay = Number(middle, min(n.low for n in late), max(n.high for n in late), remark=late[0].remark)
    others = Counter(n.partition("/")[0] for n in fitted if n not in used and n.partition("/")[0] not in used)
    beyond = tuple(f"{quantity} ({count} fitted)" for quantity, count in others.items())
    return Settings(joints, delay, float(model.opt.timestep), _about(summary), beyond)


def _modelled(model: mujoco.MjModel, d: Drive) -> dict[str, float]:
    """The numbers of a plain drive as the twin's model has them."""
    limit = torque_limit(model, d.actuator)
    return {
        "kp": float(model.actuator_gainprm[d.actuator, 0]),
        "kd": float(-model.actuator_biasprm[d.actuator, 2]),
        "armature": float(model.dof_armature[d.dof]),
        "viscous": float(model.dof_damping[d.dof]),
    } | ({"limit": limit} if math.isfinite(limit) else {})


def _intervals(belief: Belief, summary: Mapping[str, Any]) -> dict[str, Number]:
    """The twin's parameters that were fitted, by name, with the summary's intervals."""
    out: dict[str, Number] = {}
    for p in belief.space.parameters:
        try:
            entry = summary["parameters"][p.name]
            value, low, high = (float(entry[k]) for k in ("value", "low", "high"))
        except (KeyError, TypeError, ValueError):
            raise BadInput(
                f"fit.json does not say what {p.name} is, though belief.json does: they are not of the same fit"
            ) from None
        if not (math.isfinite(value + low + high) and low <= high):
            raise BadInput(f"fit.json has no proper interval for {p.name}")
        number = Number(value, min(low, value), max(high, value), p.log and low > 0, slack=high - low)
        if not entry.get("identified", True) or entry.get("at_bound"):
            why = "at a bound" if entry.get("at_bound") else "not determined by the logs"
            number = replace(Number.known(value, f"{why}; 90 % interval {low:.4g} to {high:.4g}"), slack=math.inf)
        out |= dict.fromkeys(p.members or (p.name,), number)
    return out


def _pose(model: mujoco.MjModel, d: Drive, summary: Mapping[str, Any]) -> float:
    """The angle at which friction is exported: where the summary says that the joint was, else the middle of its range."""
    pose = summary.get("pose")
    if isinstance(pose, dict) and isinstance(pose.get(d.name), int | float):
        return float(pose[d.name])
    return (d.low + d.high) / 2 if math.isfinite(d.low + d.high) else float(model.qpos0[d.qpos])


def _dry(
    model: mujoco.MjModel, d: Drive, fitted: Mapping[str, Number], draws: Mapping[str, Array], angle: float
) -> tuple[Number, float]:
    """Dry friction of a moving, unloaded joint at an angle, and what is added to it at rest (Stribeck's) [N m]."""
    coulomb = float(model.dof_frictionloss[d.dof])
    alone = fitted.get(f"friction.coulomb/{d.name}", Number.known(coulomb))
    if not (callback.frictional(model) and model.jnt_user[d.joint, -1] == callback.MARKED):
        return alone, 0.0
    stribeck, _, _, _, linear, square, home, _ = model.jnt_user[d.joint, callback.slot(model) :]
    if not linear and not square:
        return alone, float(stribeck)
    terms = (("friction.coulomb", coulomb), ("friction.angle", linear), ("friction.angle2", square))
    powers = (angle - home) ** np.arange(3)
    value = max(0.0, float(sum(v * x for (_, v), x in zip(terms, powers, strict=True))))
    drawn = sum(draws.get(f"{q}/{d.name}", np.full(DRAWS, v)) * x for (q, v), x in zip(terms, powers, strict=True))
    low, high = np.maximum(np.quantile(drawn, (0.05, 0.95)), 0.0).tolist()
    remark = f"at {angle:.3g} rad; it depends on the angle"
    return Number(value, min(low, value), max(high, value), remark=remark), float(stribeck)


def _about(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """Who made this from what, and how good it is."""
    tables: list[Mapping[str, Any]] = [t if isinstance(t, Mapping) else {} for t in map(summary.get, ("heldout", "origin"))]
    errors, origin = tables
    labels = {"fit": "fitted", "given": "as given", "delay": "best delay", "command": "command"}
    known = [f"{labels[k]} {math.degrees(errors[k]):.3g}" for k in labels if isinstance(errors.get(k), int | float)]
    out = [f"Robot: {summary.get('robot', 'not named')}. Logs: {', '.join(map(str, origin.get('logs') or ['not named']))}."]
    out += [f"Held-out position error [deg]: {', '.join(known)}."] * bool(known)
    for key, words in (("against", "DO NOT USE THIS FIT"), ("suspicions", "DO NOT TRUST ITS NUMBERS")):
        if summary.get(key):
            out.append(f"{words}: {' '.join(map(str, summary[key]))}")
    return tuple(out)
