"""Frames of training taken apart again: what signals they show by a contract, and whether physics lead from one to the next."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.check.walk import Scene
from gapless.errors import BadInput
from gapless.policy import Contract, targets
from gapless.robots import RobotModel, legs_of

FEW = 8
"""Frames below which nothing can be said of how they follow one another."""


@dataclass(frozen=True)
class Signals:
    """What the newest frame of each observation shows, by kind, in SI units. Shape of each: (frames, columns)."""

    by_kind: dict[str, Array]
    joints: dict[str, tuple[str, ...]]
    """Of the kinds with one column a joint."""

    def __contains__(self, kind: str) -> bool:
        return kind in self.by_kind

    def __getitem__(self, kind: str) -> Array:
        return self.by_kind[kind]


def frame_columns(contract: Contract, age: int = 0) -> dict[str, list[int]]:
    """Columns of each term in an observation, of a frame that is `age` periods old; terms without such a frame are left out."""
    layout = contract.observation
    columns: dict[str, list[int]] = {}
    start = 0
    blocks: list[list[int]] = []
    for i, term in enumerate(layout.terms):
        same = blocks and layout.major == "frame" and _shown(layout.terms[blocks[-1][0]]) == _shown(term)
        if same:
            blocks[-1].append(i)
        else:
            blocks.append([i])
    for block in blocks:
        history = layout.terms[block[0]].history
        dim = sum(layout.terms[i].dim for i in block)
        slot = age if layout.order == "newest_first" else history - 1 - age
        column = start + slot * dim
        for i in block:
            if age < history:
                columns[layout.terms[i].name] = list(range(column, column + layout.terms[i].dim))
            column += layout.terms[i].dim
        start += dim * history
    return columns


def _shown(term: object) -> tuple[int, int]:
    return term.history, term.lag  # type: ignore[attr-defined]


def signals_of(contract: Contract, observation: Array) -> Signals:
    """Signals that observations (frames, width) show; what is late is moved to where it belongs, NaN where it is not known."""
    places = frame_columns(contract)
    values: dict[str, Array] = {}
    joints: dict[str, tuple[str, ...]] = {}
    for term in contract.observation.terms:
        if term.kind in values:
            continue
        scale = np.broadcast_to(np.asarray(term.scale, float), term.dim)
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = np.asarray(observation, float)[:, places[term.name]] / scale
        if term.lag:
            moved = np.full_like(shown, np.nan)
            moved[: -term.lag or None] = shown[term.lag :]
            shown = moved
        if term.kind in ("q", "dq", "last_action"):
            joints[term.kind] = term.joints or (contract.action.joints if term.kind == "last_action" else contract.joints.names)
        if term.kind == "q" and not term.absolute and contract.joints.default_pos is not None:
            shown = shown + [contract.joints.default_pos[contract.joints.names.index(j)] for j in joints["q"]]
        values[term.kind] = shown
    return Signals(values, joints)


@dataclass(frozen=True)
class Step:
    """How well physics lead from each frame to the next."""

    error: float
    """Of the predicted change of joint speeds, over the change itself: 0 is perfect, 1 no better than no change."""
    by_joint: dict[str, float]
    sink: float = 0.0
    """How deep the robot was taken to stand in the ground [m]."""


def predict(
    contract: Contract, robot: RobotModel, observation: Array, action: Array, most: int = 32, sink: float | None = None
) -> Step:
    """Put the robot into the state of each frame, give it the action, and compare the joint speeds with those of the next.

    Args:
        contract: read by which frames are taken apart, and by which torques act.
        robot: its model.
        observation: successive frames, shape (frames, width).
        action: that was given in each, shape (frames, driven joints).
        most: frames to use.
        sink: how deep the robot stands in the ground, where that is known [m].
    """
    signals = signals_of(contract, observation)
    if "q" not in signals or "dq" not in signals:
        raise BadInput("the observation shows no joint positions and speeds")
    scene = Scene(contract, robot, None)
    where = [contract.joints.names.index(j) for j in signals.joints["q"]]
    gravity = signals["gravity"] * -contract.conventions.gravity[2] if "gravity" in signals else None
    sent = targets(contract, np.asarray(action, np.float32))
    legs = legs_of(robot) if scene.base is not None and "velocity" not in signals else None
    wrong, change, sink = [], [], scene.sink() if sink is None else sink
    for i in _spread(signals, most):
        q, dq = scene.default.copy(), np.zeros(len(scene.default))
        q[where], dq[where] = signals["q"][i], signals["dq"][i]
        quat = upright(gravity[i]) if gravity is not None else np.array([1.0, 0, 0, 0])
        gyro = signals["gyro"][i] if "gyro" in signals else np.zeros(3)
        velocity = signals["velocity"][i] if "velocity" in signals else None
        if not np.isfinite(quat).all() or np.abs(q).max() > 100 or np.abs(dq).max() > 1e4:
            return Step(np.inf, {})
        scene.put(q, dq, quat, gyro, velocity, legs, sink)
        scene.step(sent[i])
        after = scene.read()["dq"][0][where]
        if scene.broken():
            return Step(np.inf, {})
        wrong.append(np.abs(after - signals["dq"][i + 1]))
        change.append(np.abs(signals["dq"][i + 1] - signals["dq"][i]))
    if not wrong:
        return Step(np.inf, {})
    error, moved = np.mean(wrong, axis=0), np.mean(change, axis=0)
    by_joint = {j: float(e / max(m, 1e-9)) for j, e, m in zip(signals.joints["q"], error, moved, strict=True)}
    # the median over joints of the median over frames: contacts that cannot be known make some frames useless
    return Step(float(np.median(error) / max(float(np.median(moved)), 1e-9)), by_joint, sink)


def _spread(signals: Signals, most: int) -> Sequence[int]:
    """Frames that have a successor and are known, spread over all."""
    known = np.isfinite(np.hstack([v for k, v in signals.by_kind.items() if k in ("q", "dq", "gyro", "gravity")])).all(axis=1)
    known = np.atleast_1d(known)
    usable = np.flatnonzero(known[:-1] & known[1:])
    return [int(i) for i in usable[:: max(1, len(usable) // most)]]


def upright(gravity: Array) -> Array:
    """The orientation without heading under which gravity points that way in the base. Shape: (3,) to (4,), w first."""
    down = gravity / max(float(np.linalg.norm(gravity)), 1e-9)
    quat = np.zeros(4)
    rotation = np.zeros(9)
    up = -down
    x = np.array([1.0, 0, 0]) - up[0] * up
    if np.linalg.norm(x) < 1e-6:
        x = np.array([0, 1.0, 0]) - up[1] * up
    x /= np.linalg.norm(x)
    rotation[:] = np.array([x, np.cross(up, x), up]).ravel()  # rows: the world's axes as the base sees them
    mujoco.mju_mat2Quat(quat, rotation)
    return quat
