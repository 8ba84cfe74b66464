"""Static checks of a contract against a model: what is shown, from which frame, and how actions become torques."""

import math
from collections.abc import Iterator

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.check.alternatives import DEGREES, SCALES, other_side
from gapless.check.finding import DRIVES, FAIL, PASS, SIGNALS, SKIP, WARN, Check
from gapless.policy import Contract
from gapless.robots import RobotModel, base_joint, imu_of, torque_limit

SLOWEST, FASTEST = 0.2, 100.0
"""Natural frequency of a drive with the inertia that it moves [Hz]; robots in the field have 1 to 20."""
TILT = 15.0
"""Of an IMU against gravity on a robot in its default pose [degrees]."""
NEEDED = ("timing.control_dt", "joints.default_pos", "action.scale", "action.offset")
KNOWN = (
    "q",
    "dq",
    "gyro",
    "gravity",
    "quat",
    "command",
    "last_action",
    "velocity",
    "tip",
    "clock",
    "clock_sin",
    "clock_cos",
    "context",
)
UNSENSED = ("velocity", "base_pos", "height_scan", "contacts")


def unknown(contract: Contract) -> Iterator[Check]:
    """What the files do not say and a runtime needs."""
    needed: tuple[str, ...] = (*NEEDED, "joints.kp", "joints.kd") if contract.action.kind == "position" else NEEDED
    observed = [t for t in contract.observation.terms if t.kind == "q"]
    if observed and all(t.absolute for t in observed) and set(contract.action.joints) == set(contract.joints.names):
        needed = tuple(name for name in needed if name != "joints.default_pos")
    missing = [name for name in needed if name in contract.unknown]
    if missing:
        sentence = f"The policy's files do not say {', '.join(missing)}."
        fix = "State it in an override file: --override FILE.toml, or --set NAME=VALUE."
        yield Check("contract", SIGNALS, SKIP, sentence, len(missing), 0, "fields", fix)


def terms(contract: Contract) -> Iterator[Check]:
    """Terms that no sensor gives, that are negated, late or scaled as nobody does."""
    for term in contract.observation.terms:
        scale = np.atleast_1d(np.asarray(term.scale, float))
        if term.kind in UNSENSED:
            sentence = f"The policy needs {term.name}, which no sensor of a legged robot measures: an estimator must give it."
            fix = "Train without it, or run and test the estimator (legs and IMU) with the policy."
            yield Check("privileged term", SIGNALS, WARN, sentence, fix=fix)
        elif term.kind not in KNOWN:
            sentence = f"What {term.name} is cannot be told, so it cannot be rebuilt from signals."
            yield Check("unknown term", SIGNALS, WARN, sentence, fix="Say its kind in an override file.")
        if not scale.all():
            sentence = f"{term.name} is multiplied by zero."
            yield Check("observation scale", SIGNALS, FAIL, sentence, 0.0, fix="Correct its scale.")
        elif (scale < 0).any() and term.kind in KNOWN:
            sentence = f"{term.name} is multiplied by a negative number."
            yield Check("sign", SIGNALS, FAIL, sentence, float(scale.min()), 0.0, fix="Correct its scale.")
        elif term.kind in ("q", "dq", "gyro"):
            common = (1.0, *SCALES.get(term.kind, ()))
            if any(np.allclose(scale, DEGREES * c, rtol=0.01) or np.allclose(scale, c / DEGREES, rtol=0.01) for c in common):
                sentence = f"The scale {scale[0]:.4g} of {term.name} turns degrees and rad into each other."
                yield Check("degrees", SIGNALS, WARN, sentence, float(scale[0]), fix="Angles are in rad.")
        if term.lag:
            sentence = f"{term.name} is shown {term.lag} periods late."
            yield Check("lagged observation", SIGNALS, WARN, sentence, term.lag, 0, "periods", "Was it so in training?")


def imu(contract: Contract, robot: RobotModel) -> Iterator[Check]:
    """The IMU's frame exists, is upright in the default pose, and is that of the base."""
    frame, model = contract.conventions.imu_frame, robot.model
    if not any(t.kind in ("gyro", "gravity", "quat") for t in contract.observation.terms) or base_joint(model) is None:
        return
    if frame is None:
        seat = imu_of(model)
        sentence = f"The frame of gyro and gravity is not stated; that of {seat.frame if seat else 'the base'} is assumed."
        yield Check("IMU frame", SIGNALS, PASS, sentence)
        return
    ids = {k: mujoco.mj_name2id(model, k, frame) for k in (mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_BODY)}
    kind = next((k for k, i in ids.items() if i >= 0), None)
    if kind is None:
        sentence = f"The IMU is said to be on {frame!r}, and the model has no such site or link."
        yield Check("IMU frame", SIGNALS, FAIL, sentence, fix="Name a site or link of the model under conventions.imu_frame.")
        return
    data = posed(contract, robot)
    rotation = (data.site_xmat if kind == mujoco.mjtObj.mjOBJ_SITE else data.xmat)[ids[kind]].reshape(3, 3)
    tilt = math.degrees(math.acos(float(np.clip(rotation[2, 2], -1, 1))))
    body = int(model.site_bodyid[ids[kind]] if kind == mujoco.mjtObj.mjOBJ_SITE else ids[kind])
    base = int(model.jnt_bodyid[base_joint(model)])
    heading = math.degrees(math.atan2(rotation[1, 0], rotation[0, 0]))
    if tilt > TILT or abs(heading) > TILT:
        sentence = (
            f"In the default pose {frame} is tilted by {tilt:.0f} degrees and turned by {heading:.0f} degrees against the base."
        )
        fix = "Name the frame that training used; upright gravity is (0, 0, -1)."
        yield Check("IMU frame", SIGNALS, FAIL, sentence, max(tilt, abs(heading)), TILT, "degrees", fix)
    elif model.body_weldid[body] != model.body_weldid[base]:
        sentence = f"{frame} is on {model.body(body).name}, which joints move against the base {model.body(base).name}."
        fix = "Policies are trained with the base's gyro and gravity unless they say otherwise: compare with training."
        yield Check("IMU frame", SIGNALS, WARN, sentence, fix=fix)
    else:
        yield Check("IMU frame", SIGNALS, PASS, f"{frame} is on the base, upright.", tilt, TILT, "degrees")


def posed(contract: Contract, robot: RobotModel) -> mujoco.MjData:
    """The robot in the contract's default pose."""
    data = mujoco.MjData(robot.model)
    data.qpos[:] = robot.home
    if contract.joints.default_pos is not None:
        where = {d.name: d.qpos for d in robot.drives}
        for name, value in zip(contract.joints.names, contract.joints.default_pos, strict=True):
            data.qpos[where[name]] = value
    base = base_joint(robot.model)
    if base is not None:
        data.qpos[int(robot.model.jnt_qposadr[base]) + 3 :][:4] = 1, 0, 0, 0
    mujoco.mj_forward(robot.model, data)
    return data


def gains(contract: Contract, robot: RobotModel) -> Iterator[Check]:
    """Gains are positive, differ where joints differ, are alike left and right, and suit the inertia that they move."""
    joints = contract.joints
    if joints.kp is None or joints.kd is None or contract.action.kind != "position" or joints.gain_unit != "Nm":
        return
    kp, kd = np.array(joints.kp), np.array(joints.kd)
    model, data = robot.model, posed(contract, robot)
    dof = {d.name: d.dof for d in robot.drives}
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    inertia = np.array([mass[dof[n], dof[n]] for n in joints.names])
    if (kp <= 0).any() or (kd <= 0).any():
        none = [n for n, p, d in zip(joints.names, kp, kd, strict=True) if p <= 0 or d <= 0]
        sentence = f"{len(none)} joints have no stiffness or no damping, {none[0]} among them."
        fix = "State the gains of training; where it had none, train with --kp and --kd."
        yield Check("gains", DRIVES, FAIL, sentence, float(min(kp.min(), kd.min())), 0.0, fix=fix)
        return
    hertz = np.sqrt(kp / inertia) / math.tau
    slow, fast = int(np.argmin(hertz)), int(np.argmax(hertz))
    if hertz[slow] < SLOWEST or hertz[fast] > FASTEST:
        worst = slow if hertz[slow] < SLOWEST else fast
        sentence = f"With kp {kp[worst]:g} N m/rad and what it moves, {joints.names[worst]} swings at {hertz[worst]:.2g} Hz."
        yield Check("gains", DRIVES, FAIL, sentence, float(hertz[worst]), SLOWEST, "Hz", "State the gains of training.")
        return
    for what, values in (("kp", kp), ("kd", kd)):
        if (pair := uneven(joints.names, values)) is not None:
            a, b = pair
            sentence = f"{what} is {values[joints.names.index(a)]:g} for {a} and {values[joints.names.index(b)]:g} for {b}."
            yield Check(
                "gains order", DRIVES, FAIL, sentence, fix="Left and right drives are alike: bring the gains into order."
            )
            return
    sentence = f"Drives swing at {hertz[slow]:.1f} to {hertz[fast]:.1f} Hz, left as right."
    yield Check("gains", DRIVES, PASS, sentence, float(hertz[slow]), SLOWEST, "Hz")


def uneven(names: tuple[str, ...], values: Array, tolerance: float = 0.02) -> tuple[str, str] | None:
    """The pair of left and right joints whose figures differ most, where any do."""
    pairs = [(n, o) for n in names if (o := other_side(n)) != n and o in names]
    off = {p: abs(abs(values[names.index(p[0])]) - abs(values[names.index(p[1])])) for p in pairs}
    worst = max(off, key=lambda p: off[p], default=None)
    return worst if worst and off[worst] > tolerance * max(1e-9, float(np.abs(values).max())) else None


def action(contract: Contract, robot: RobotModel) -> Iterator[Check]:
    """The action's scale has one sign, is alike left and right, and asks each drive for the same share of its torque."""
    if contract.action.scale is None:
        return
    names = contract.action.joints
    scale = np.broadcast_to(np.asarray(contract.action.scale, float), len(names))
    if (scale == 0).any():
        yield Check(
            "action scale", DRIVES, FAIL, f"The action of {names[int(np.argmin(abs(scale)))]} is multiplied by zero.", 0.0
        )
        return
    if (scale < 0).any() and not (scale < 0).all():
        negated = [n for n, s in zip(names, scale, strict=True) if s < 0]
        sentence = f"The action of {', '.join(negated[:4])} is negated, and that of the others is not."
        yield Check("sign", DRIVES, FAIL, sentence, float(scale.min()), 0.0, fix="Correct the action's scale.")
        return
    if (pair := uneven(names, scale)) is not None:
        a, b = (scale[names.index(n)] for n in pair)
        sentence = f"The action's scale is {a:g} for {pair[0]} and {b:g} for {pair[1]}."
        yield Check("action scale", DRIVES, FAIL, sentence, fix="Left and right joints are alike: correct the action's scale.")
        return
    yield from _shares(contract, robot, scale)


def _shares(contract: Contract, robot: RobotModel, scale: Array) -> Iterator[Check]:
    """mjlab and its descendants scale by a quarter of torque limit over stiffness; a joint that leaves the rule is a slip."""
    names, joints = contract.action.joints, contract.joints
    if joints.kp is None or contract.action.kind != "position" or np.ptp(scale) == 0:
        return
    limits = {d.name: torque_limit(robot.model, d.actuator) for d in robot.drives}
    kp = np.array([joints.kp[joints.names.index(n)] for n in names])
    share = scale * kp / np.array([limits[n] for n in names])
    rule = float(np.median(share))
    odd = np.abs(share / rule - 1) > 0.15
    if not np.isfinite(rule) or odd.mean() > 0.2:
        return
    if odd.any():
        worst = int(np.argmax(np.abs(np.log(share / rule))))
        right = scale[worst] * rule / share[worst]
        sentence = (
            f"Scale times kp is {100 * rule:.0f} % of the torque limit for {int((~odd).sum())} joints and "
            f"{100 * share[worst]:.0f} % for {names[worst]}: its scale {scale[worst]:g} should be about {right:.2f}."
        )
        yield Check("action scale", DRIVES, WARN, sentence, float(share[worst]), rule, fix="Compare with the training's scale.")
    else:
        yield Check("action scale", DRIVES, PASS, f"Every action asks for {100 * rule:.0f} % of its joint's torque.", rule)


def pose(contract: Contract, robot: RobotModel) -> Iterator[Check]:
    """The default pose is within the joints' limits, alike left and right, and what actions are added to."""
    joints, act = contract.joints, contract.action
    if joints.default_pos is None:
        return
    values = np.array(joints.default_pos)
    low, high = np.array([robot.ranges.get(n, (-np.inf, np.inf)) for n in joints.names]).T
    beyond = np.maximum(low - values, values - high)
    worst = int(np.argmax(beyond))
    if beyond[worst] > 0.05:
        degrees = np.abs(values).max() > math.tau
        sentence = (
            f"{joints.names[worst]} stands at {values[worst]:.3g} rad by default, {beyond[worst]:.2g} rad beyond its limit."
        )
        name = "degrees" if degrees else "default pose"
        fix = "The pose is in degrees." if degrees else "Compare pose and joint order with training."
        yield Check(name, DRIVES, FAIL, sentence, float(beyond[worst]), 0.05, "rad", fix)
        return
    if (pair := uneven(joints.names, values, 0.1)) is not None:
        a, b = (values[joints.names.index(n)] for n in pair)
        sentence = f"The default pose is {a:g} rad for {pair[0]} and {b:g} rad for {pair[1]}."
        yield Check("default pose", DRIVES, WARN, sentence, fix="Left and right are usually alike.")
        return
    if act.offset is not None and act.kind == "position" and values.any():
        offset = np.broadcast_to(np.asarray(act.offset, float), len(act.joints))
        default = np.array([joints.default_pos[joints.names.index(n)] for n in act.joints])
        worst = int(np.argmax(np.abs(offset - default)))
        if abs(offset[worst] - default[worst]) > 0.02 and offset.any():
            name, seen, added = act.joints[worst], default[worst], offset[worst]
            sentence = f"{name} is observed from {seen:g} rad, and its action is added to {added:g} rad."
            fix = "Make joints.default_pos and action.offset agree, as training did."
            yield Check("default pose", DRIVES, FAIL, sentence, float(abs(offset[worst] - default[worst])), 0.02, "rad", fix)
            return
    yield Check("default pose", DRIVES, PASS, "The default pose is within limits and what actions are added to.")


def timing(contract: Contract) -> Iterator[Check]:
    """The period is one that robots run at."""
    dt = contract.timing.control_dt
    if dt is None:
        return
    good = 0.001 <= dt <= 0.1
    sentence = f"The policy runs every {1e3 * dt:g} ms."
    fix = "" if good else "Periods are in s; legged robots run policies every 5 to 40 ms."
    yield Check("period", SIGNALS, PASS if good else FAIL, sentence, 1e3 * dt, 100.0, "ms", fix)


def limits(contract: Contract, robot: RobotModel) -> Iterator[Check]:
    """Torque limits of the contract against those of the model."""
    if contract.joints.effort_limit is None:
        return
    own = {d.name: torque_limit(robot.model, d.actuator) for d in robot.drives}
    pairs = [(n, e, own[n]) for n, e in zip(contract.joints.names, contract.joints.effort_limit, strict=True) if e is not None]
    shares = [(e / m, n, e, m) for n, e, m in pairs if np.isfinite(m)]
    if not shares:
        return
    least, name, stated, modelled = min(shares)
    if least < 0.5:
        sentence = f"The contract allows {name} {stated:g} N m, and the model has {modelled:g} N m."
        yield Check("torque limit", DRIVES, WARN, sentence, least, 0.5, fix="Compare with the drive's data sheet and training.")
    else:
        yield Check("torque limit", DRIVES, PASS, f"Torque limits are at least {100 * least:.0f} % of the model's.", least, 0.5)
