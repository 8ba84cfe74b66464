"""The stance of a robot on its feet: how it holds itself, and which motions of its joints it bears without falling.

A robot stands like a table on springs, its drives: commands move the base until their torques balance, and shift load from
foot to foot. Near home all of that is linear (springs kp on the joints, feet that stay where they are), so that what a
command does to the centre of mass, to the tilt and to the loads is a row of numbers for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.robots import imu_of
from gapless.twin import Twin
from gapless.worlds.engine import quiet

SETTLES = 0.5  # s: on its feet after it was put there; jumps that take longer than that load no foot by surprise
GIVES = 1e-6  # m/N: how far floor and feet give way, which shares a load between the points of a flat foot
BEARS = 0.05  # share of what makes it fall that a command at full reach may do
MOST = 0.35  # rad: of lift; a home pose that needs more is no stance


@dataclass(frozen=True)
class Stance:
    """How a robot stands, by joint."""

    tips: float
    """By what angle it must tilt to tip over [rad]."""
    lift: Array
    """What to add to the command of home so that it does not sag under its own weight [rad]. Shape: (joints,)."""
    slow: Array
    """What a command of 1 rad does once the robot has settled, as shares of what makes it fall: loads of feet, centre of mass
    above their edge, tilt. Shape: (effects, joints)."""
    fast: Array
    """The same with the loads while the base has not moved yet. Shape: (effects, joints)."""

    def steady(self, swing: Array, control_dt: float) -> Array:
        """The motion nearest to a given one (periods, joints) [rad] that a standing robot bears: less of what makes it fall."""
        from scipy.ndimage import uniform_filter1d

        largest = float(np.abs(swing).max(initial=0.0))
        smooth = uniform_filter1d(swing, max(1, round(SETTLES / control_dt)), axis=0)
        return smooth @ _borne(self.slow, largest) + (swing - smooth) @ _borne(self.fast, largest)


def stance_of(twin: Twin) -> Stance | None:
    """How a robot stands at home; None for one whose base is fixed."""
    model, imu, n = twin.model, imu_of(twin.model), len(twin.drives)
    if imu is None:
        return None
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = twin.home, twin.home_command
    with quiet():
        mujoco.mj_step(model, data, round(SETTLES / model.opt.timestep))
    jacobians, points, links = [], [], []
    for contact in data.contact:
        moving = [int(b) for b in model.geom_bodyid[contact.geom] if model.body_weldid[b]]
        if len(moving) == 1:
            jacobians.append(np.zeros((3, model.nv)))
            mujoco.mj_jac(model, data, jacobians[-1], None, contact.pos, moving[0])
            points.append(contact.pos[:2].copy())
            links.append(moving[0])
    inside = _margin(points, data.subtree_com[0, :2])
    tips = float(np.arctan2(inside, data.subtree_com[0, 2])) if inside > 0 else 0.1
    servo = np.array([d.signal == "q" for d in twin.drives])
    if inside <= 0 or not servo.any():
        return Stance(tips, np.zeros(n), np.zeros((0, n)), np.zeros((0, n)))
    feet, base, dofs = np.concatenate(jacobians), slice(imu.dof, imu.dof + 6), [d.dof for d in twin.drives]
    kp = np.array([j.kp for j in twin.joint_table])
    kp = np.where(servo, kp, kp[servo].mean())  # wheels are held while it stands
    data.qvel[:] = 0.0
    mujoco.mj_forward(model, data)
    loads = np.linalg.pinv(feet[:, base].T) @ data.qfrc_bias[base]
    lift = (data.qfrc_bias[dofs] - feet[:, dofs].T @ loads) / kp
    com = np.zeros((3, model.nv))
    mujoco.mj_jacSubtreeCom(model, data, com, 0)
    share = np.array([np.equal(links, link) for link in sorted(set(links))])  # which points belong to a foot
    weight = model.body_subtreemass[0] * np.linalg.norm(model.opt.gravity) / len(share)
    moved, settled = _response(feet, dofs, kp)
    _, at_once = _response(feet[:, dofs], range(n), kp)
    slow = [share @ settled[2::3] / weight, com[:2] @ moved / inside, moved[base][3:5] / tips]
    fast = [*slow, share @ at_once[2::3] / weight]
    return Stance(tips, np.clip(lift * servo, -MOST, MOST), np.concatenate(slow) * servo, np.concatenate(fast) * servo)


def _response(feet: Array, dofs: Sequence[int], kp: Array) -> tuple[Array, Array]:
    """What commands do through springs kp on some degrees of freedom (dofs), to all of them and to the forces on the feet.

    Shapes: (degrees of freedom, joints) and (3 points, joints), in N for each rad.
    """
    forces, free = feet.shape
    stiffness, pull = 1e-6 * kp.max() * np.eye(free), np.zeros((free + forces, len(kp)))
    stiffness[dofs, dofs] = kp
    pull[dofs, np.arange(len(kp))] = kp
    answer = np.linalg.solve(np.block([[stiffness, feet.T], [feet, -GIVES * np.eye(forces)]]), pull)
    return answer[:free], answer[free:]


def _borne(effects: Array, largest: float) -> Array:
    """What takes from a motion of some size [rad] what it may not do: close to all where that is much. Symmetric."""
    scaled = effects * (largest / BEARS)
    return np.asarray(np.linalg.inv(np.eye(effects.shape[1]) + scaled.T @ scaled))


def _margin(points: list[Array], centre: Array) -> float:
    """How far a centre of mass is from the edge of the points that carry it [m]; not positive where it is not above them."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        edges = ConvexHull(points).equations if len(points) > 2 else np.zeros((0, 3))
    except QhullError:  # feet in a line
        edges = np.zeros((0, 3))
    return -float((edges[:, :2] @ centre + edges[:, 2]).max(initial=-np.inf)) if len(edges) else 0.0
