"""Drives and a home pose for a URDF, which has neither: from its limits, its control interfaces and the robot's inertia."""

from xml.etree.ElementTree import Element

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.report import few
from gapless.robots.drives import ONE_AXIS
from gapless.robots.keyframes import home_within, moved_home
from gapless.robots.urdf import Urdf, number

SLOWEST, FASTEST = 20.0, 60.0
"""Bandwidths between which a position loop of an unknown drive is put [rad/s]: 3 Hz, as arms follow, to 10 Hz, as legs do."""

LIGHTEST = 0.1
"""Share of the inertia of a robot's median joint that each joint has at least: what lacks is its rotor's, which a URDF does not
state. Drives of a robot are of like make, and a wrist as weak as it is light would follow nothing."""

WITHIN = 0.05
"""How far from its command dry friction and weight may hold a joint [rad or m]."""

HELD = 0.2
"""What it is said from [rad or m]."""


def put_drives(urdf: Urdf) -> list[str]:
    """Give the model of a URDF drives and a home pose, in place; what was assumed.

    A joint takes what its control interface says (ros2_control, or a transmission), else positions. The gain of a position
    loop is the torque limit over 1 rad, within the bandwidths above; it is damped critically, both at the joint's own inertia
    in the home pose, to which a light joint's rotor is added. Where the file's friction or the weight of what it carries would
    hold the joint back all the same, it is as much as overcomes that, up to the torque limit over 1 rad.
    """
    spec, model = urdf.spec, urdf.spec.copy().compile()
    limits = {
        joint.get("name", ""): limit for joint in urdf.robot.findall("joint") if (limit := joint.find("limit")) is not None
    }
    coupled = {int(j) for j in model.eq_obj1id[model.eq_type == mujoco.mjtEq.mjEQ_JOINT]}
    free = [j for j in range(model.njnt) if int(model.jnt_type[j]) in ONE_AXIS and j not in coupled]
    if not free:
        return []
    home = home_within(model)
    (inertia, weight), takes = _loads(model, home), _interfaces(urdf.robot)
    rotor = _rotors(model, free, inertia)
    efforts = {
        model.joint(j).name: max(0.0, number(limits[n], "effort")) if (n := model.joint(j).name) in limits else 0.0
        for j in free
    }
    idle = [name for name, effort in efforts.items() if not effort and name not in takes] if any(efforts.values()) else []
    held, weak = list[str](), list[str]()
    for name, effort in ((name, effort) for name, effort in efforts.items() if name not in idle):
        dof = int(model.joint(name).dofadr[0])
        own, drag, stuck, hangs = (float(a[dof]) for a in (inertia + rotor, model.dof_damping, model.dof_frictionloss, weight))
        kp = float(np.clip(effort, own * SLOWEST**2, own * FASTEST**2))
        kp = max(kp, min(max(drag * SLOWEST, (stuck + hangs) / WITHIN), effort or np.inf))
        held += [name] if stuck > HELD * kp and takes.get(name) != "effort" else []
        weak += [name] if 0 < effort < hangs else []
        spec.joint(name).armature += rotor[dof]
        drive = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        if takes.get(name) == "velocity":
            drive.set_to_velocity(kv=own * SLOWEST)
        elif takes.get(name) == "effort":
            drive.set_to_motor()
        else:
            drive.set_to_position(kp=kp, kv=2 * (kp * own) ** 0.5)
        if effort:  # the limit is the drive's: there it can be found wrong
            drive.forcelimited, drive.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, [-effort, effort]
            spec.joint(name).actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
    option = urdf.robot.find("mujoco/option")
    if option is None or "integrator" not in option.attrib:  # coupled links are lighter than each alone: stiff, for Euler
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.add_key(name="home", qpos=home)
    said = ["a URDF has no gains: drives were given some that suit their torque limits and inertias; state yours (--kp, --kd)"]
    light = [name for name in efforts if name not in idle and rotor[model.joint(name).dofadr[0]]]
    said += [f"light joints were given rotors, of which a URDF says nothing: {few(light)}"] if light else []
    said += [f"joints with an effort limit of 0 have no drive: {few(idle)}"] if idle else []
    if held:
        said.append(f"dry friction in the file holds joints back by more than {HELD:g} rad, check <dynamics>: {few(held)}")
    if weak:
        said.append(f"effort limits are less than what joints carry when they are bent: {few(weak)}")
    return [*said, *moved_home(model, home)]


def _loads(model: mujoco.MjModel, pose: Array) -> tuple[Array, Array]:
    """What each joint moves of the robot in a pose [kg m2 or kg], and the most that this can weigh. Shapes: (dofs,)."""
    data = mujoco.MjData(model)
    data.qpos[:] = pose
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    arm = np.cross(data.subtree_com[model.jnt_bodyid] - data.xanchor, data.xaxis)
    reach = np.where(model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE, np.linalg.norm(arm, axis=1), 1.0)
    weight = np.zeros(model.nv)
    weight[model.jnt_dofadr] = model.body_subtreemass[model.jnt_bodyid] * np.linalg.norm(model.opt.gravity) * reach
    return full.diagonal().copy(), weight


def _rotors(model: mujoco.MjModel, joints: list[int], inertia: Array) -> Array:
    """What is lacking of the inertia of joints, by a share of the median of their kind (turning, sliding). Shape: (dofs,)."""
    out = np.zeros(model.nv)
    for kind in ONE_AXIS:
        dofs = model.jnt_dofadr[[j for j in joints if model.jnt_type[j] == kind]]
        if len(dofs):
            out[dofs] = np.maximum(LIGHTEST * np.median(inertia[dofs]) - inertia[dofs], 0.0)
    return out


def _interfaces(robot: Element) -> dict[str, str]:
    """Joint to what its drive takes ("position", "velocity" or "effort"), where the file says it."""
    out = {}
    for joint in robot.iterfind("transmission/joint"):
        for interface in joint.findall("hardwareInterface"):
            # Gazebo's effort interface carries the torques of a position loop that runs on the robot as a rule
            out[joint.get("name", "")] = "velocity" if "velocity" in (interface.text or "").lower() else "position"
    for joint in robot.iterfind("ros2_control/joint"):
        kinds = [interface.get("name", "") for interface in joint.findall("command_interface")]
        if kinds:
            out[joint.get("name", "")] = next((k for k in ("position", "velocity", "effort") if k in kinds), "position")
    return out
