"""What a robot file leaves open: a sentence for each assumption."""

from collections.abc import Iterator
from itertools import chain, count

import mujoco

from gapless.report import few
from gapless.robots.drives import ONE_AXIS

DEFAULT_CONTROL_DT = 0.02
"""Control period where a model does not name one: 50 Hz, what legged policies run at [s]."""
_TRANSMISSIONS = {
    int(mujoco.mjtTrn.mjTRN_TENDON): "a tendon",
    int(mujoco.mjtTrn.mjTRN_SITE): "a site",
    int(mujoco.mjtTrn.mjTRN_BODY): "a body",
    int(mujoco.mjtTrn.mjTRN_SLIDERCRANK): "a slider-crank",
}


def name_unnamed(spec: mujoco.MjSpec) -> Iterator[str]:
    """Name every body, joint, geom and actuator; a sentence for each joint and actuator without a name."""
    every = {"body": spec.bodies, "joint": spec.joints, "geom": spec.geoms, "actuator": spec.actuators}
    for kind, elements in every.items():
        taken = {element.name for element in elements}
        for element in elements:
            if element.name:
                continue
            stem = element.target if kind == "actuator" else f"{element.parent.name}_{kind}"
            numbered = (f"{stem or kind}_{number}" for number in count(2))
            element.name = next(n for n in chain([stem or kind], numbered) if n not in taken)
            taken.add(element.name)
            if kind in ("joint", "actuator"):
                yield f"{kind} without a name: it is called {element.name!r}"


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
        target = _TRANSMISSIONS.get(int(model.actuator_trntype[actuator]))
        if target:
            yield f"actuator {model.actuator(actuator).name!r} drives {target}, not a joint: it is ignored"
    if not model.nactuator:
        yield "no actuators: joints are passive unless gains are given"
    if stated_period(model) is None:
        yield f"no numeric control_dt: commands every {DEFAULT_CONTROL_DT} s, rounded to whole physics steps"
