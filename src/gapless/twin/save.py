"""Saving a twin as an ordinary MJCF: compiled values back into the spec, all digits, and a note on what is not in it."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import mujoco
import numpy as np

from gapless.robots import ONE_AXIS, Drive, is_dc_motor, is_position_servo
from gapless.twin import callback
from gapless.twin.mechanism import Fields

DIGITS = 17  # of a float64
LINEAR = 1  # interpolation of a delayed command: 0 hold, 1 linear, 2 cubic


@contextlib.contextmanager
def _all_digits() -> Iterator[None]:
    """MuJoCo saves six digits; its library can be told to save them all."""
    library = callback.library()
    before = library._mjPRIVATE__get_xml_precision()
    library._mjPRIVATE__set_xml_precision(DIGITS)
    try:
        yield
    finally:
        library._mjPRIVATE__set_xml_precision(before)


def to_xml(spec: mujoco.MjSpec) -> str:
    """MJCF with every number as short as it can be written without losing a bit."""
    with _all_digits():
        xml = str(spec.to_xml())
    return re.sub(r"(?<=[\" ])-?\d+\.\d{12,}(e[-+]?\d+)?(?=[\" ])", lambda m: repr(float(m[0])), xml)


def write(
    path: str | os.PathLike[str], spec: mujoco.MjSpec, model: mujoco.MjModel, fields: Fields, drives: Sequence[Drive]
) -> None:
    """Write `model`, compiled from `spec` and `fields`, as MJCF; check that it loads as the same model; replace `path`."""
    path = Path(path)
    spec = spec.copy()
    notes = ["An ordinary MuJoCo model; written by gapless."]
    _bake_elements(spec, model, fields)
    notes += _bake_path(spec, model, fields, drives)
    if callback.needed(model):
        notes.append(
            "Dry friction here depends on speed, load or angle, which needs a callback: "
            "`from gapless.twin import callback; callback.install()` before stepping. Without it, only Coulomb friction acts."
        )
    if spec.meshes or spec.textures or spec.hfields:
        folder = Path(spec.modelfiledir or ".").resolve()
        spec.meshdir = os.path.relpath(folder / (spec.meshdir or "."), path.resolve().parent)
        spec.texturedir = os.path.relpath(folder / (spec.texturedir or "."), path.resolve().parent)
        spec.modelfiledir = str(path.resolve().parent)
    for text in [t for t in spec.texts if t.name == "gapless"]:
        spec.delete(text)
    spec.add_text(name="gapless", data=" ".join(notes))
    spec.compile()
    xml = to_xml(spec)
    part = path.with_name(path.name + ".part.xml")
    part.write_text(xml)
    try:
        _same(mujoco.MjModel.from_xml_path(str(part)), model, fields)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _bake_elements(spec: mujoco.MjSpec, model: mujoco.MjModel, fields: Fields) -> None:
    """Put the compiled values of the written fields into the spec's elements."""
    touched = set(fields)
    for j in range(model.njnt):
        joint = spec.joint(model.joint(j).name)
        dof = int(model.jnt_dofadr[j])
        if int(model.jnt_type[j]) not in ONE_AXIS:
            continue
        if "dof_damping" in touched:
            joint.damping = [model.dof_damping[dof], *model.dof_dampingpoly[dof]]
        if "jnt_stiffness" in touched:
            joint.stiffness = [model.jnt_stiffness[j], *model.jnt_stiffnesspoly[j]]
        for field, attribute, at in (
            ("dof_frictionloss", "frictionloss", dof),
            ("dof_armature", "armature", dof),
            ("jnt_range", "range", j),
            ("jnt_actfrcrange", "actfrcrange", j),
            ("jnt_user", "userdata", j),
        ):
            if field in touched:
                setattr(joint, attribute, getattr(model, field)[at])
    for b in range(1, model.nbody):
        body = spec.body(model.body(b).name)
        if {"body_mass", "body_inertia"} & touched and model.body_mass[b] > 0:
            body.mass, body.ipos = float(model.body_mass[b]), model.body_ipos[b]
            body.iquat, body.inertia = model.body_iquat[b], model.body_inertia[b]
            body.fullinertia = [math.nan] * 6
            body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
            body.explicitinertial = True
        if "body_pos" in touched:
            body.pos = model.body_pos[b]
    if {"body_mass", "body_inertia"} & touched:
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
        spec.compiler.settotalmass = -1
    for a, actuator in enumerate(spec.actuators):
        for field in ("gainprm", "biasprm", "dynprm", "forcerange"):
            if f"actuator_{field}" in touched:
                setattr(actuator, field, getattr(model, f"actuator_{field}")[a])
    for g, geom in enumerate(spec.geoms):
        for field in ("friction", "solref", "pos"):
            if f"geom_{field}" in touched:
                setattr(geom, field, getattr(model, f"geom_{field}")[g])
    for i, pair in enumerate(spec.pairs):
        for field in ("friction", "solref"):
            if f"pair_{field}" in touched:
                setattr(pair, field, getattr(model, f"pair_{field}")[i])
    for name in [n for n in touched if n.startswith("opt.")]:
        setattr(spec.option, name[4:], getattr(model.opt, name[4:]))


def _bake_path(spec: mujoco.MjSpec, model: mujoco.MjModel, fields: Fields, drives: Sequence[Drive]) -> list[str]:
    """Command delay and encoder zero have a place in MJCF; say what of the path has none."""
    notes = []
    step = model.opt.timestep
    by_actuator = {d.actuator: i for i, d in enumerate(drives)}
    for a, actuator in enumerate(spec.actuators if drives else []):
        # a second drive of a joint, or one of a tendon, is on the first drive's bus
        delay = float(fields["path.action"][0, by_actuator.get(a, 0)])
        actuator.delay, actuator.nsample = 0.0, 0
        if delay > 0:
            # the engine cannot delay by less than one step
            actuator.delay, actuator.interp = max(delay, step), LINEAR
            actuator.nsample = math.ceil(actuator.delay / step) + 1
            if delay < step:
                notes.append(f"The command delay of {actuator.name}, {delay:g} s, is rounded up to one step.")
    for i, d in enumerate(drives):
        actuator = spec.actuators[d.actuator]
        offset = float(fields["path.offset_q"][0, i])
        if offset and is_position_servo(model, d.actuator):
            if is_dc_motor(model, d.actuator):
                notes.append(f"The encoder offset of {d.name}, {offset:g} rad, is not in this file: subtract it from commands.")
            else:
                bias = np.array(actuator.biasprm)
                bias[0] -= model.actuator_gainprm[d.actuator, 0] * offset
                actuator.biasprm = bias
    baked = {"path.action", "path.offset_q", "path.slope_roll", "path.slope_pitch"}
    rest = [n[5:] for n in fields if n.startswith("path.") and n not in baked and np.any(fields[n])]
    if rest:
        notes.append(f"Not in this file, since MJCF has no place for it: {', '.join(sorted(rest))}.")
    return notes


def _same(loaded: mujoco.MjModel, model: mujoco.MjModel, fields: Fields) -> None:
    """Raise if a field that was baked did not survive saving; a wrong file is worse than none."""
    for name in fields:
        if name.startswith("path.") or name in ("body_iquat", "actuator_biasprm"):
            continue
        get = name[4:] if name.startswith("opt.") else name
        a = getattr(loaded.opt if name.startswith("opt.") else loaded, get)
        b = getattr(model.opt if name.startswith("opt.") else model, get)
        if np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=1e-9, atol=1e-12):
            raise RuntimeError(f"saving lost values of {name}; the file was not written")
