"""Alternatives: the same contract with one thing read differently, as runtimes and exporters are known to differ."""

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gapless.policy import Contract, Term
from gapless.robots import RobotModel, base_joint, imu_of, torque_limit

DEGREES = math.degrees(1.0)
SCALES = {"gyro": (0.2, 0.25), "dq": (0.05,), "velocity": (2.0,), "command": (2.0,)}
"""Factors that frameworks put on terms besides 1; those of legged_gym and its descendants."""


@dataclass(frozen=True)
class Alternative:
    """One change of a contract, and what it would mean if that were the right one."""

    defect: str
    """What is wrong then: "joint order", "history order" ..."""
    sentence: str
    """How the contract would have to read."""
    contract: Contract


def alternatives(contract: Contract, robot: RobotModel, first: Collection[str] = ()) -> Iterator[Alternative]:
    """Every alternative that differs from the contract as it stands, the most common mistakes first.

    first: defects that something else points at, to be tried before all others.
    """
    seen = {contract.json()}
    for defect, sentence, change in sorted(_changes(contract, robot), key=lambda c: c[0] not in first):
        try:
            other = change()
        except ValueError:  # an alternative that makes no contract is none
            continue
        if (text := other.json()) not in seen:
            seen.add(text)
            yield Alternative(defect, sentence, other)


Change = tuple[str, str, Callable[[], Contract]]


def _changes(contract: Contract, robot: RobotModel) -> Iterator[Change]:
    yield from _orders(contract, robot)
    yield from _layouts(contract)
    yield from _signals(contract, robot)
    yield from _terms(contract)
    yield from _drives(contract, robot)
    yield from _one_gain(contract)


def exchanges(contract: Contract, joints: Sequence[str]) -> Iterator[Alternative]:
    """Every pair of some joints exchanged, as by a slip in a list of names; also with gains that are right."""
    for a, b in itertools.combinations(joints, 2):
        names = dict(zip(contract.joints.names, exchanged(contract.joints.names, a, b), strict=True))
        sentence = f"{a} and {b} are exchanged"
        yield Alternative("joint order", sentence, _renamed(contract, names))
        other = _own_gains(contract, names)
        if other.joints.kp != contract.joints.kp:
            yield Alternative("joint order", f"{sentence}, and their gains are not", other)


def exchanged(names: Sequence[str], a: str, b: str) -> tuple[str, ...]:
    """Names with two of them exchanged."""
    return tuple({a: b, b: a}.get(n, n) for n in names)


def _one_gain(contract: Contract) -> Iterator[Change]:
    """Stiffness or damping alone."""
    joints = contract.joints
    if joints.kp is None or joints.kd is None:
        return
    for field, word, factors in (
        ("kp", "stiffness", (0.5, 2.0, 1 / 3, 3.0)),
        ("kd", "damping", (0.5, 2.0, 0.2, 5.0, 0.1, 10.0)),
    ):
        for factor in factors:
            values = tuple((factor * np.array(getattr(joints, field))).tolist())
            change = lambda f=field, v=values: replace(contract, joints=replace(joints, **{f: v}))  # noqa: E731
            yield "gains", f"the {word} is {factor:.2g} times as large", change


def _orders(contract: Contract, robot: RobotModel) -> Iterator[Change]:
    """Names in another order over the same figures; also with gains that are right, as where a file keeps them by motor."""
    names = contract.joints.names
    for what, order in joint_orders(names, robot).items():
        renamed, sentence = dict(zip(names, order, strict=True)), f"the policy's joints are in {what}"
        yield "joint order", sentence, lambda r=renamed: _renamed(contract, r)  # type: ignore[misc]
        yield "joint order", f"{sentence}, and the gains are not", lambda r=renamed: _own_gains(contract, r)  # type: ignore[misc]


def joint_orders(names: tuple[str, ...], robot: RobotModel) -> dict[str, tuple[str, ...]]:
    """Orders of a robot's joints that runtimes use, those that have just these joints."""
    model = robot.model
    used = [d for d in robot.drives if d.name in set(names)]
    depth = {d.name: _depth(model, int(model.jnt_bodyid[d.joint])) for d in used}
    tree = [model.joint(j).name for j in range(model.njnt) if model.joint(j).name in depth]
    orders = {
        "the order of the model's actuators": [d.name for d in used],
        "the order of the model's tree (depth first)": tree,
        "breadth-first order, as Isaac Lab has it": sorted(tree, key=lambda n: depth[n]),
        "alphabetical order": sorted(tree),
        "an order with left and right exchanged": [other_side(n) if other_side(n) in depth else n for n in names],
        "the order of the SDK, right legs first": [other_side(d.name) if other_side(d.name) in depth else d.name for d in used],
    }
    return {what: tuple(o) for what, o in orders.items() if sorted(o) == sorted(names) and tuple(o) != tuple(names)}


def _depth(model: Any, body: int) -> int:
    deep = 0
    while body:
        deep, body = deep + (model.body_jntnum[body] > 0), int(model.body_parentid[body])
    return deep


def other_side(name: str) -> str:
    """A joint's partner by its name."""
    for a, b in (("left", "right"), ("Left", "Right"), ("FL", "FR"), ("RL", "RR"), ("HL", "HR"), ("LF", "RF"), ("LH", "RH")):
        if a in name:
            return name.replace(a, b)
        if b in name:
            return name.replace(b, a)
    for a, b in (("L_", "R_"), ("l_", "r_")):
        if name.startswith(a):
            return b + name[2:]
        if name.startswith(b):
            return a + name[2:]
    return name


def _kind(name: str) -> str:
    """A joint's name without its side, and without the leg of a quadruped."""
    return re.sub(r"^(left|right|[lr]|[frhl][lrfh])_", "*_", name, flags=re.IGNORECASE)


def _renamed(contract: Contract, names: dict[str, str]) -> Contract:
    def all_of(joints: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names[j] for j in joints)

    terms = tuple(replace(t, joints=all_of(t.joints)) for t in contract.observation.terms)
    return replace(
        contract,
        joints=replace(contract.joints, names=all_of(contract.joints.names)),
        action=replace(contract.action, joints=all_of(contract.action.joints)),
        observation=replace(contract.observation, terms=terms),
    )


def _own_gains(contract: Contract, names: dict[str, str]) -> Contract:
    """The same with the gain of each joint where it was."""
    other, joints = _renamed(contract, names), contract.joints
    if joints.kp is None or joints.kd is None:
        return other
    places = [joints.names.index(n) for n in other.joints.names]
    kp, kd = (tuple(gain[i] for i in places) for gain in (joints.kp, joints.kd))
    return replace(other, joints=replace(other.joints, kp=kp, kd=kd))


def _layouts(contract: Contract) -> Iterator[Change]:
    layout = contract.observation
    if all(t.history == 1 for t in layout.terms):
        return
    order = {"oldest_first": "newest_first", "newest_first": "oldest_first"}[layout.order]
    major = {"term": "frame", "frame": "term"}[layout.major]
    words = {"term": "term by term", "frame": "frame by frame"}

    def read(**changes: Any) -> Callable[[], Contract]:
        return lambda: replace(contract, observation=replace(layout, **changes))

    yield "history order", f"the history is {order.replace('_', ' ')}", read(order=order)
    yield "history layout", f"the history goes {words[major]}", read(major=major)
    yield "history layout", f"the history goes {words[major]}, {order.replace('_', ' ')}", read(major=major, order=order)


def _signals(contract: Contract, robot: RobotModel) -> Iterator[Change]:
    conventions, layout = contract.conventions, contract.observation
    if any(t.kind == "quat" for t in layout.terms):
        other = {"wxyz": "xyzw", "xyzw": "wxyz"}[conventions.quaternion]
        change = lambda: replace(contract, conventions=replace(conventions, quaternion=other))  # noqa: E731
        yield "quaternion order", f"the quaternion term is {other}", change
    if any(t.kind == "gravity" for t in layout.terms):
        up = tuple(-g for g in conventions.gravity)
        change = lambda: replace(contract, conventions=replace(conventions, gravity=up))  # noqa: E731
        yield "gravity sign", f"gravity on an upright robot is (0, 0, {up[2]:+g})", change
    seat = imu_of(robot.model)
    for frame in sorted(imu_frames(robot) - {conventions.imu_frame or (seat.frame if seat else "")}):
        yield (
            "IMU frame",
            f"gyro and gravity are those of {frame}",
            lambda f=frame: replace(contract, conventions=replace(conventions, imu_frame=f)),  # type: ignore[misc]
        )
    for form in {"raw", "clipped", "processed"} - {layout.last_action}:
        yield (
            "last action",
            f"the last action is shown {form}",
            lambda f=form: replace(contract, observation=replace(layout, last_action=f)),  # type: ignore[misc]
        )


def imu_frames(robot: RobotModel) -> set[str]:
    """Frames that differ in what an IMU there would read: that of the base, and sites that look like an IMU's elsewhere."""
    model, seat = robot.model, imu_of(robot.model)
    if seat is None:
        return set()
    base = model.body_weldid[model.jnt_bodyid[base_joint(model)]]
    sites = (model.site(i) for i in range(model.nsite))
    moved = {s.name for s in sites if "imu" in s.name.lower() and model.body_weldid[model.site_bodyid[s.id]] != base}
    return {seat.frame, *moved}


def _terms(contract: Contract) -> Iterator[Change]:
    for term in contract.observation.terms:
        scale = np.atleast_1d(np.asarray(term.scale, float))
        change = lambda value, t=term: _with_term(contract, t, scale=value)  # noqa: E731
        if (scale < 0).any():
            yield "sign", f"{term.name} is not negated", lambda t=term, s=scale: _with_term(contract, t, scale=_plain(abs(s)))  # type: ignore[misc]
        if term.lag:
            yield "lagged observation", f"{term.name} is not late", lambda t=term: _with_term(contract, t, lag=0)  # type: ignore[misc]
        if term.kind in ("last_action", "gravity") or term.kind.startswith("clock"):
            continue
        common = [s for s in (1.0, *SCALES.get(term.kind, ())) if not np.allclose(scale, s)]
        for value in common:
            yield "observation scale", f"{term.name} is scaled by {value:g}", lambda v=value, c=change: c(v)  # type: ignore[misc]
        if term.kind in ("q", "dq", "gyro"):
            for factor in (1 / DEGREES, DEGREES):
                unit = "rad" if factor < 1 else "degrees"
                other = _plain(scale * factor)
                yield "degrees", f"{term.name} is in {unit}", lambda v=other, c=change: c(v)  # type: ignore[misc]
        negated = _plain(-scale)
        yield "sign", f"{term.name} is negated", lambda v=negated, c=change: c(v)  # type: ignore[misc]
        if term.kind == "command" and len(names := term.commands or tuple(contract.commands)) > 1:
            usual = sorted(names, key=list(contract.commands).index)
            for order in (o for o in itertools.permutations(usual) if o != names):
                sentence = f"{term.name} shows {', '.join(order)}"
                yield "command order", sentence, lambda t=term, o=order: _with_term(contract, t, commands=o)  # type: ignore[misc]


def _plain(values: Any) -> Any:
    return float(values[0]) if len(values) == 1 else tuple(values.tolist())


def _with_term(contract: Contract, term: Term, **changes: Any) -> Contract:
    terms = tuple(replace(t, **changes) if t.name == term.name else t for t in contract.observation.terms)
    return replace(contract, observation=replace(contract.observation, terms=terms))


def _drives(contract: Contract, robot: RobotModel) -> Iterator[Change]:
    joints, action = contract.joints, contract.action
    if action.clip is not None:
        yield "action clip", "actions are not clipped", lambda: replace(contract, action=replace(action, clip=None))
    if action.scale is not None:
        scale = np.broadcast_to(np.asarray(action.scale, float), len(action.joints))
        if (scale < 0).any():
            yield (
                "sign",
                "no joint's action is negated",
                lambda: replace(contract, action=replace(action, scale=tuple(abs(scale)))),
            )
        for factor in (0.5, 2.0, 0.25, 4.0):
            yield (
                "action scale",
                f"the action's scale is {factor:g} times as large",
                lambda f=factor: replace(contract, action=replace(action, scale=tuple((f * scale).tolist()))),  # type: ignore[misc]
            )
        kinds = sorted({_kind(j) for j in action.joints})
        for kind, factor in itertools.product(kinds if len(kinds) > 1 else (), (0.5, 2.0)):
            each = np.where([_kind(j) == kind for j in action.joints], factor, 1.0)
            yield (
                "action scale",
                f"the action's scale of {kind} is {factor:g} times as large",
                lambda e=each: replace(contract, action=replace(action, scale=tuple((e * scale).tolist()))),  # type: ignore[misc]
            )
    if joints.kp is not None and joints.kd is not None:
        for factor in (0.5, 2.0):
            gains = [tuple((factor * np.array(g)).tolist()) for g in (joints.kp, joints.kd)]
            sentence = f"both gains are {factor:g} times as large"
            yield "gains", sentence, lambda g=gains: replace(contract, joints=replace(joints, kp=g[0], kd=g[1]))  # type: ignore[misc]
        for what, order in joint_orders(joints.names, robot).items():
            index = [order.index(n) for n in joints.names]
            gains = [tuple(g[i] for i in index) for g in (joints.kp, joints.kd)]
            sentence = f"the gains are in {what}"
            yield "gains order", sentence, lambda g=gains: replace(contract, joints=replace(joints, kp=g[0], kd=g[1]))  # type: ignore[misc]
    if contract.timing.control_dt is not None:
        for factor in (0.5, 2.0, 0.25, 4.0):
            dt = factor * contract.timing.control_dt
            timing = replace(contract.timing, control_dt=dt, sim_dt=None, decimation=None)
            yield "period", f"the period is {1e3 * dt:g} ms", lambda t=timing: replace(contract, timing=t)  # type: ignore[misc]
    if joints.effort_limit is not None:
        limits = {d.name: torque_limit(robot.model, d.actuator) for d in robot.drives}
        full = tuple(limits[n] if np.isfinite(limits.get(n, np.inf)) else None for n in joints.names)
        yield (
            "torque limit",
            "the model's own torque limits hold",
            lambda: replace(contract, joints=replace(joints, effort_limit=full)),
        )
    yield from _poses(contract, robot)


def _poses(contract: Contract, robot: RobotModel) -> Iterator[Change]:
    joints, action = contract.joints, contract.action
    at = {d.name: float(robot.home[d.qpos]) for d in robot.drives}
    index = [joints.names.index(j) for j in action.joints]
    if joints.default_pos is not None and action.kind == "position":
        pose = tuple(joints.default_pos[i] for i in index)
        change = lambda p=pose: replace(contract, action=replace(action, offset=p))  # noqa: E731
        yield "default pose", "actions are added to the default pose that is stated", change
    poses = {"the model's home pose": [at.get(n, 0.0) for n in joints.names]}
    if action.offset is not None and len(index) == len(joints.names):
        offset = np.broadcast_to(np.asarray(action.offset, float), len(index))
        poses["the action's offset"] = [float(offset[index.index(i)]) for i in range(len(joints.names))]
    if joints.default_pos is not None:
        for what, order in joint_orders(joints.names, robot).items():
            poses[f"the stated one in {what}"] = [joints.default_pos[order.index(n)] for n in joints.names]
        poses["the stated one in degrees"] = [math.radians(x) for x in joints.default_pos]
    for what, pose in poses.items():
        added = tuple(pose[i] for i in index)
        change = lambda p=tuple(pose), o=added: replace(  # noqa: E731
            contract, joints=replace(joints, default_pos=p), action=replace(action, offset=o)
        )
        yield "default pose", f"the default pose is {what}", change
