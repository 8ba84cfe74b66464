"""Saving a twin as an ordinary MJCF: compiled values back into the spec, all digits, and a note on what is not in it."""

import contextlib
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import mujoco
import numpy as np

from gapless.robots import ONE_AXIS, Drive, is_position_servo
from gapless.twin import callback, drive_law, learned
from gapless.twin.engine_memory import library as engine_library
from gapless.twin.mechanism import Fields, field_of
from gapless.twin.mechanisms.gains import keep_gains
from gapless.twin.mechanisms.offset import keep_seat, keep_zero, shift

DIGITS = 17  # of a float64
INERTIA = {"body_mass", "body_inertia", "body_ipos", "body_iquat"}  # given together, as MJCF does
FILES = "assets"
"""Folder beside a saved model for its meshes and pictures."""
LINEAR = 1  # interpolation of a delayed command: 0 hold, 1 linear, 2 cubic


@contextlib.contextmanager
def _all_digits() -> Iterator[None]:
    """MuJoCo saves six digits; its library can be told to save them all."""
    library = engine_library()
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
    path: str | os.PathLike[str],
    spec: mujoco.MjSpec,
    model: mujoco.MjModel,
    fields: Fields,
    drives: Sequence[Drive],
    gains: Mapping[str, tuple[float, float]],
    computed: Sequence[str] = (),
) -> None:
    """Write `model`, compiled from `spec` and `fields`, as MJCF; check that it loads as the same model; replace `path`.

    Args:
        path: of the file.
        spec: of the model.
        model: with values put in.
        fields: with these values.
        drives: of the robot.
        gains: by joint the kp and kd that logs state where those of the model hold.
        computed: mechanisms whose forces are computed while stepping, which no MJCF holds.
    """
    path = Path(path)
    spec = spec.copy()
    notes = ["An ordinary MuJoCo model; written by gapless."]
    lost = bake(spec, model, fields)
    notes += _bake_path(spec, model, fields, drives)
    keep_gains(spec, gains)
    if lost:
        notes.append(f"Not in this file, since MJCF has no place for it: {', '.join(sorted(lost))}.")
    if computed:
        notes.append(
            f"Not in this file, since it is computed while stepping: the torque of {', '.join(computed)}. "
            "The twin that has it is made from the belief's file (`gapless.twin.load_recipe`)."
        )
    if callback.frictional(model):
        notes.append(
            "Dry friction here depends on speed, load or angle, which needs a callback: "
            "`from gapless.twin import callback; callback.install()` before stepping. Without it, only Coulomb friction acts."
        )
    if networks := drive_law.rows(model):
        notes.append(
            f"The drives of {', '.join(networks)} follow networks that were learned from measured torque, the numerics named "
            "gapless_drive, without a delay of commands: they need the same callback, `from gapless.twin import callback; "
            "callback.install()`. A plain MuJoCo has the plain law instead."
        )
    elif learned.marked(model):
        notes.append(
            "A learned torque acts here besides, whose networks are the numerics named gapless_residual: it needs the same "
            "callback, `from gapless.twin import callback; callback.install()`. A plain MuJoCo lacks it."
        )
    _copy_files(spec, path.resolve().parent)
    for text in [t for t in spec.texts if t.name == "gapless"]:
        spec.delete(text)
    spec.add_text(name="gapless", data=" ".join(notes))
    spec.compile()
    xml = to_xml(spec)
    part = path.with_name(path.name + ".part.xml")
    part.write_text(xml)
    try:
        _same(mujoco.MjModel.from_xml_path(str(part)), model, set(fields) - lost)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _copy_files(spec: mujoco.MjSpec, folder: Path) -> None:
    """Put the meshes and pictures of a model beside its file, so that both can be moved; in place."""
    model = Path(spec.modelfiledir or ".").resolve()
    taken: dict[str, Path] = {}
    for elements, where in ((spec.meshes, spec.meshdir), (spec.textures, spec.texturedir), (spec.hfields, spec.meshdir)):
        for element in (e for e in elements if e.file):
            source = model / (where or ".") / element.file
            name = source.name
            while taken.get(name, source) != source:
                name = f"{len(taken)}_{name}"
            taken[name] = source
            (folder / FILES).mkdir(exist_ok=True)
            if source != folder / FILES / name:
                shutil.copyfile(source, folder / FILES / name)
            element.file = f"{FILES}/{name}"
    spec.meshdir = spec.texturedir = ""
    spec.modelfiledir = str(folder)


def bake(spec: mujoco.MjSpec, model: mujoco.MjModel, fields: Fields) -> set[str]:
    """Put the compiled values of the written fields into the spec's elements; the fields that have no place there."""
    single = [j for j in range(model.njnt) if int(model.jnt_type[j]) in ONE_AXIS]
    joints = [spec.joint(model.joint(j).name) for j in single]
    bodies = [(b, spec.body(model.body(b).name)) for b in range(1, model.nbody)]
    rows = {
        "jnt": list(zip(single, joints, strict=True)),
        "dof": list(zip(model.jnt_dofadr[single], joints, strict=True)),
        "body": bodies,
    }
    lost = set()
    for name in fields:
        owner, _, attribute = name.partition("_")
        if name.startswith("opt."):
            setattr(spec.option, name[4:], getattr(model.opt, name[4:]))
        elif not name.startswith("path.") and name not in INERTIA:
            values = getattr(model, name)
            elements = rows[owner] if owner in rows else list(enumerate(getattr(spec, owner + "s", ())))
            attribute = {"user": "userdata"}.get(attribute, attribute)
            if not all(hasattr(element, attribute) for _, element in elements) or not elements:
                lost.add(name)
                continue
            for row, element in elements:
                poly = getattr(model, name + "poly")[row] if hasattr(model, name + "poly") else ()
                setattr(element, attribute, [values[row], *poly] if len(poly) else values[row])
    if INERTIA & set(fields):
        for b, body in ((b, body) for b, body in bodies if model.body_mass[b] > 0):
            body.mass, body.ipos = float(model.body_mass[b]), model.body_ipos[b]
            body.iquat, body.inertia = model.body_iquat[b], model.body_inertia[b]
            body.fullinertia = [math.nan] * 6
            body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
            body.explicitinertial = True
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
        spec.compiler.settotalmass = -1
    plain = spec.copy().compile()
    return {name for name in lost if np.any(getattr(plain, name) != getattr(model, name))}


def _bake_path(spec: mujoco.MjSpec, model: mujoco.MjModel, fields: Fields, drives: Sequence[Drive]) -> list[str]:
    """Command delay and encoder zero have a place in MJCF; say what of the path has none."""
    notes = []
    step = model.opt.timestep
    by_actuator = {d.actuator: i for i, d in enumerate(drives)}
    for a, actuator in enumerate(spec.actuators if drives else []):
        # a second drive of a joint, or one of a tendon, is on the first drive's bus
        delay = float(fields["path.action"][0, by_actuator.get(a, 0)])
        actuator.delay, actuator.nsample = 0.0, 0
        if delay > 0 and model.actuator_ctrlnum[a]:
            # the engine cannot delay by less than one step
            actuator.delay, actuator.interp = max(delay, step), LINEAR
            actuator.nsample = math.ceil(actuator.delay / step) + 1
            if delay < step:
                notes.append(f"The command delay of {actuator.name}, {delay:g} s, is rounded up to one step.")
    for i, d in enumerate(drives):
        actuator = spec.actuators[d.actuator]
        zero = float(fields["path.offset_q"][0, i])
        keep_zero(spec, d.name, zero)
        if zero:
            moved = shift(actuator, model, d, zero)
            commands = "" if moved or not is_position_servo(model, d.actuator) else ", and subtract it from commands"
            notes.append(f"Encoders of {d.name} read {zero:g} rad more than its joint has: add it to readings{commands}.")
    if {"path.imu_roll", "path.imu_pitch"} <= set(fields):
        keep_seat(spec, *(float(np.ravel(fields[f"path.imu_{axis}"])[0]) for axis in ("roll", "pitch")))
    baked = {"path.action", "path.offset_q", "path.slope_roll", "path.slope_pitch"}
    rest = [n[5:] for n in fields if n.startswith("path.") and n not in baked and np.any(fields[n])]
    if rest:
        notes.append(f"Not in this file, since MJCF has no place for it: {', '.join(sorted(rest))}.")
    return notes


def _same(loaded: mujoco.MjModel, model: mujoco.MjModel, fields: set[str]) -> None:
    """Raise if a field that was baked did not survive saving; a wrong file is worse than none."""
    for name in fields:
        if name.startswith("path.") or name in ("body_iquat", "actuator_biasprm"):
            continue
        a, b = field_of(loaded, name), field_of(model, name)
        if np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=1e-9, atol=1e-12):
            raise RuntimeError(f"saving lost values of {name}; the file was not written")
