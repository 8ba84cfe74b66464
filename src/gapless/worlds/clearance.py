"""Clearance: how far a robot may swing its joints before it hits itself, its surroundings, or the ends of its joints."""

from collections.abc import Iterable, Iterator

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.twin import Twin
from gapless.worlds.worlds import Worlds

DEEP = 0.003  # m that links may be inside each other: shapes of models are often a little larger than the robot's
APART = 0.01  # m by which links that touched are moved apart, beyond the depth of the contact
END = 0.02  # share of a joint's range beside its ends that is not entered, since the robot is not quite its model
EASE = 0.5  # s in which a robot moves aside
FARTHEST = 0.1  # rad that a joint moves aside at a time
LESS, TRIES = 0.15, 12  # share by which the swing of the joint that does most about a contact shrinks, and how often


def cleared(twin: Twin, centre: Array, swing: Array) -> Array:
    """A swing that the model as given makes without touching what it does not touch at home: moved aside, and smaller.

    A contact is undone by the joints that brought the links together, each by its part in it: what they swing about moves so
    that the links part, and they swing less. First the commands themselves are looked at, which takes no time; then what the
    model makes of them.

    Args:
        twin: the robot, whose base does not float.
        centre: what commands swing about. Shape: (joints,).
        swing: commands less that, from 0 on. Shape: (periods, joints).
    """
    share, aside = np.ones(len(twin.drives)), np.zeros(len(twin.drives))
    most, ease = (
        np.abs(swing).max(axis=0, initial=0.0),
        np.minimum(1.0, np.arange(len(swing)) * twin.control_dt / EASE)[:, None],
    )
    low, high = _ends(twin)
    for poses in (_commanded, _simulated):
        for _ in range(TRIES):
            moved = share * swing + aside * ease
            too_far, apart = _contacts_along(twin, poses(twin, centre + moved))
            if not too_far.any():
                break
            share *= 1 - LESS * too_far
            room = share * most
            aside = np.clip(centre + aside + apart, np.minimum(low + room, centre), np.maximum(high - room, centre)) - centre
    return share * swing + aside * ease


def _ends(twin: Twin) -> tuple[Array, Array]:
    """Between what each joint may be, a little within its range; home is always allowed. Shape of each: (joints,)."""
    low, high = np.array([(d.low, d.high) for d in twin.drives]).reshape(-1, 2).T
    margin = np.where(np.isfinite(high - low), END * (high - low), 0.0)
    home = twin.home[[d.qpos for d in twin.drives]]
    return np.minimum(low + margin, home), np.maximum(high - margin, home)


def _commanded(twin: Twin, commands: Array) -> Iterator[Array]:
    """Poses in which every servo is where it is told to be: positions (nq,)."""
    pose = twin.home.copy()
    servos = [i for i, d in enumerate(twin.drives) if d.signal == "q"]
    for command in commands:
        pose[[twin.drives[i].qpos for i in servos]] = command[servos]
        yield pose


def _simulated(twin: Twin, commands: Array) -> Iterator[Array]:
    """Poses that the model as given goes through, until its physics break: positions (nq,)."""
    worlds = Worlds(twin, 1, threads=1)
    control = worlds.home_command.copy()
    for command in commands:
        control[[d.control for d in twin.drives]] = command
        worlds.step(control[None])
        if worlds.failures:
            return
        yield worlds.qpos[0]


def _contacts_along(twin: Twin, poses: Iterable[Array]) -> tuple[Array, Array]:
    """What each servo has to do with contacts and ends of ranges in some poses, 1 for the one that does most of one of them;
    and how far to move it so that the links part [rad]. Shape of each: (joints,)."""
    data = mujoco.MjData(twin.model)
    places, servo = [d.qpos for d in twin.drives], np.array([d.signal == "q" for d in twin.drives])
    home, at_home = twin.home[places], {links for links, _, _ in _contacts(twin, data, twin.home)}
    low, high = _ends(twin)
    out, deepest = np.zeros(len(servo)), dict[tuple[int, ...], tuple[float, Array, Array]]()
    for pose in poses:
        for links, depth, speed in _contacts(twin, data, pose):
            if links not in at_home and depth > deepest.get(links, (0.0,))[0]:
                deepest[links] = depth, servo * speed, pose[places] - home
        out = np.maximum(out, servo & ((pose[places] < low) | (pose[places] > high)))
    aside = np.zeros(len(servo))
    for depth, speed, away in deepest.values():
        part = np.abs(speed * away)
        out = np.maximum(out, part / max(float(part.max()), 1e-12))
        aside += speed * (depth + APART) / max(float(speed @ speed), 1e-12)
    return out, np.clip(aside, -FARTHEST, FARTHEST)


def _contacts(twin: Twin, data: mujoco.MjData, pose: Array) -> Iterator[tuple[tuple[int, ...], float, Array]]:
    """Pairs of links that are in each other in a pose, how deep [m], and how fast each joint parts them (joints,)."""
    model = twin.model
    data.qpos[:] = pose
    mujoco.mj_fwdPosition(model, data)
    for contact in data.contact:
        if contact.dist < -DEEP:
            both = np.zeros((2, 3, model.nv))
            for jacobian, geom in zip(both, contact.geom, strict=True):
                mujoco.mj_jac(model, data, jacobian, None, contact.pos, model.geom_bodyid[geom])
            links = tuple(sorted(model.geom_bodyid[contact.geom].tolist()))
            yield links, -float(contact.dist), (contact.frame[:3] @ (both[1] - both[0]))[[d.dof for d in twin.drives]]
