"""What a robot file leaves open: a sentence for each assumption."""

from collections.abc import Iterator
from itertools import chain, count

import mujoco

from gapless.report import few
from gapless.robots.drives import ONE_AXIS, command_of, driven_joints, is_dc_motor
from gapless.robots.model import home_key

DEFAULT_CONTROL_DT = 0.02
"""Control period where a model does not name one: 50 Hz, what legged policies run at [s]."""
NO_PERIOD = (
    f"the file does not say how often commands come (numeric control_dt): every {DEFAULT_CONTROL_DT} s, rounded to whole "
    "physics steps (--control-dt)"
)
CLOSE = 0.01
"""How far a home pose may be beyond a joint's range before it is said: limits are soft [rad or m]."""
_TRANSMISSIONS = {
    int(mujoco.mjtTrn.mjTRN_TENDON): "a tendon",
    int(mujoco.mjtTrn.mjTRN_SITE): "a site",
    int(mujoco.mjtTrn.mjTRN_BODY): "a body",
    int(mujoco.mjtTrn.mjTRN_SLIDERCRANK): "a slider-crank",
}
_KINDS = {
    int(mujoco.mjtGain.mjGAIN_MUSCLE): "is a muscle",
    int(mujoco.mjtGain.mjGAIN_DCMOTOR): "is a DC motor whose command is no position",
    int(mujoco.mjtGain.mjGAIN_AFFINE): "has a gain that depends on its joint, as a damper has",
}
"""By type of gain, what an actuator is that no log's command fits."""


def name_unnamed(spec: mujoco.MjSpec) -> Iterator[str]:
    """Name every body, joint, geom and actuator; a sentence for joints and for actuators without a name."""
    every = {"body": spec.bodies, "joint": spec.joints, "geom": spec.geoms, "actuator": spec.actuators}
    for kind, elements in every.items():
        taken, given = {element.name for element in elements}, list[str]()
        for element in elements:
            if element.name:
                continue
            stem = element.target if kind == "actuator" else f"{element.parent.name}_{kind}"
            numbered = (f"{stem or kind}_{number}" for number in count(2))
            element.name = next(n for n in chain([stem or kind], numbered) if n not in taken)
            taken.add(element.name)
            given.append(repr(element.name))
        if kind in ("joint", "actuator") and given:
            one, called = (kind, "a name: it is") if len(given) == 1 else (f"{kind}s", "names: they are")
            yield f"{one} without {called} called {few(given)}"


def stated_period(model: mujoco.MjModel) -> float | None:
    """The control period that the model names, as the numeric control_dt [s]."""
    stated = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, "control_dt") >= 0
    return float(model.numeric("control_dt").data[0]) if stated else None


def assumptions(spec: mujoco.MjSpec, model: mujoco.MjModel) -> Iterator[str]:
    """Assumptions of the named, compiled model."""
    meant = {joint.name for joint in spec.joints if joint.limited == mujoco.mjtLimited.mjLIMITED_FALSE}
    endless = [j for j in range(model.njnt) if model.jnt_type[j] in ONE_AXIS and not model.jnt_limited[j]]
    names = [repr(name) for name in (model.joint(j).name for j in endless) if name not in meant]
    if names:
        one, them = ("joint", "has no limits: it") if len(names) == 1 else ("joints", "have no limits: they")
        yield f'{one} {few(names)} {them} can turn without limit (if that is intended, write limited="false")'
    for body in range(1, model.nbody):
        if model.body_jntnum[body] and model.body_mass[body] == 0:
            yield f"body {model.body(body).name!r} moves but has no mass of its own, only that of bodies fixed to it"
    for actuator in range(model.nactuator):
        said = _said_of(model, actuator)
        if said:
            yield f"actuator {model.actuator(actuator).name!r} {said}"
    yield from _home_outside(model)
    if not model.nactuator:
        yield "no actuators: joints are passive unless gains are given"
    if stated_period(model) is None:
        yield NO_PERIOD


def _said_of(model: mujoco.MjModel, actuator: int) -> str | None:
    """What becomes of an actuator that is not the drive of a hinge or slide joint."""
    joint = int(model.actuator_trnid[actuator, 0])
    if target := _TRANSMISSIONS.get(int(model.actuator_trntype[actuator])):
        return f"drives {target}, not a joint: it is ignored"
    if model.jnt_type[joint] not in ONE_AXIS:
        return f"drives joint {model.joint(joint).name!r}, which is neither a hinge nor a slide: it is ignored"
    if command_of(model, actuator) is None:
        kind = _KINDS.get(int(model.actuator_gaintype[actuator]), "is of a kind of its own")
        return f"{kind}: it is commanded in none of position, velocity and torque, so it is ignored"
    first = driven_joints(model)[joint]
    if first != actuator:
        return f"drives joint {model.joint(joint).name!r}, as {model.actuator(first).name!r} does: it holds its home command"
    if model.actuator_gainprm[actuator, 0] == 0 and not is_dc_motor(model, actuator):
        return f"has no gain, so joint {model.joint(joint).name!r} is passive (--kp gives it one)"
    return None


def _home_outside(model: mujoco.MjModel) -> Iterator[str]:
    """A sentence where the home pose has joints outside their ranges."""
    key = home_key(model)
    pose = model.qpos0 if key is None else model.key_qpos[key]
    single = [j for j in range(model.njnt) if model.jnt_type[j] in ONE_AXIS and model.jnt_limited[j]]
    home = {j: float(pose[model.jnt_qposadr[j]]) for j in single}
    out = [
        f"{model.joint(j).name} at {home[j]:.3g} ({model.jnt_range[j][0]:.3g} to {model.jnt_range[j][1]:.3g})"
        for j in single
        if not model.jnt_range[j][0] - CLOSE <= home[j] <= model.jnt_range[j][1] + CLOSE
    ]
    if out:
        yield f"the home pose has joints outside their ranges, which push them back: {few(out)}"
