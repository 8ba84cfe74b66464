"""Load a robot: a built-in name, an MJCF or URDF file, or a robot of MuJoCo Menagerie."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from warnings import catch_warnings, simplefilter

import mujoco
import numpy as np

from gapless.errors import BadInput, unknown
from gapless.report import few
from gapless.robots.assumptions import DEFAULT_CONTROL_DT, assumptions, name_unnamed, stated_period
from gapless.robots.drives import CHOSEN, base_joint, driven, fits
from gapless.robots.keyframes import put_home, put_keyframes, take_keyframes
from gapless.robots.model import RobotModel, base_body, missing_ground
from gapless.robots.overlaps import part_overlaps
from gapless.robots.tendons import drive_joints
from gapless.robots.urdf import read_urdf
from gapless.robots.urdf_drives import put_drives

_MODELS = Path(__file__).parent / "models"
BUILT_IN = ("bench", "pendulum", "arm", "rover", "quadruped", "biped")
"""The robots that come with Gapless, simplest first."""

MODEL_FILES = (".xml", ".mjcf", ".urdf", ".xacro")
"""How the names of model files end."""
MAX_BYTES = 64 * 2**20
"""Largest model file that is read; robot descriptions are far smaller, as meshes are files of their own [bytes]."""


def load_robot(
    source: str | os.PathLike[str],
    floating: bool = False,
    packages: Sequence[str | os.PathLike[str]] = (),
    joints: Sequence[str] = (),
) -> RobotModel:
    """Load a robot from a built-in name, a path to an MJCF, URDF or xacro file, or `menagerie:NAME`.

    Args:
        source: name or path.
        floating: let the base of a model without a free joint move freely, on a floor.
        packages: folders in which `package://` names of a URDF are looked for first.
        joints: patterns of the driven joints to work on; the others are held. All unless given.
    """
    text, path = os.fspath(source), file_of(source)
    name = text.removeprefix("menagerie:") if text.startswith("menagerie:") else path.name.partition(".")[0]
    robot = _read(name, text, path, floating, [Path(p) for p in packages])
    return choose_joints(robot, joints) if joints else robot


def choose_joints(robot: RobotModel, patterns: Sequence[str], why: str = "left out by --joints") -> RobotModel:
    """The robot with only those of its driven joints that patterns match; the others hold their home command.

    why: the others are left out, as the sentence about them says it.
    """
    for pattern in patterns:
        driven(robot.model, pattern)  # refuses one that matches none
    chosen = [name for name in robot.joints if any(fits(name, pattern) for pattern in patterns)]
    others = [name for name in robot.joints if name not in chosen]
    if not others:
        return robot
    spec = robot.spec.copy()
    for text in [text for text in spec.texts if text.name == CHOSEN]:
        spec.delete(text)
    spec.add_text(name=CHOSEN, data=" ".join(chosen))
    held = f"{why}, so held in the home pose (or moved as the log says): {few(others)}"
    return replace(robot, spec=spec, model=spec.compile(), warnings=(*robot.warnings, held))


def file_of(source: str | os.PathLike[str]) -> Path:
    """The model file that a robot is loaded from."""
    text = os.fspath(source)
    if text in BUILT_IN:
        return _MODELS / f"{text}.xml"
    if text.startswith("menagerie:"):
        return _menagerie(text.removeprefix("menagerie:"))
    path = Path(text)
    if path.suffix.lower() in MODEL_FILES or path.exists():
        return path
    raise BadInput(f"{unknown('robot', text, BUILT_IN)}; it may also be a path to an MJCF or URDF file, or menagerie:NAME")


def files_of(source: str | os.PathLike[str]) -> list[Path]:
    """The model file that a robot is loaded from, then those that it includes and its meshes."""
    top = file_of(source)
    if top.suffix.lower() in (".urdf", ".xacro"):
        meshes = [Path(mesh.file) for mesh in load_robot(source).spec.meshes if mesh.file]
        return [top, *sorted(set(meshes))]
    others = {Path(p) for p in mujoco.mju_getXMLDependencies(str(top))} - {top}
    return [top, *sorted(p for p in others if p.is_file())]


def _read(name: str, source: str, path: Path, floating: bool, packages: Sequence[Path]) -> RobotModel:
    """Parse and compile one file; every error names it."""
    if not path.is_file():
        raise BadInput(f"no robot file {str(path)!r}: give an MJCF or URDF file, or one of {', '.join(BUILT_IN)}")
    if path.suffix.lower() not in (*MODEL_FILES, ".mjb", ".zip", ".mjz", ""):
        kinds = ", ".join(MODEL_FILES)
        raise BadInput(f"{path} is not a model ({kinds}): the model is named first, then the logs")
    if path.stat().st_size > MAX_BYTES:
        raise BadInput(
            f"{path} has {path.stat().st_size / 2**20:.0f} MB; robot files of at most {MAX_BYTES // 2**20} MB are read"
        )
    try:
        if path.suffix.lower() in (".urdf", ".xacro"):
            spec, warnings = _urdf(path, floating, packages)
        else:
            spec = mujoco.MjSpec.from_file(str(path))
            warnings = [*name_unnamed(spec), *_total_mass(spec), *(_float(spec, path) if floating else ())]
        warnings += [*put_home(spec), *drive_joints(spec)]
        model = spec.compile()
        if (height := missing_ground(model)) is not None:
            warnings.append(_add_floor(spec, model, height))
            model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        if isinstance(error, BadInput):
            raise BadInput(str(error) if str(path) in str(error) else f"{path}: {error}") from None
        complaint = " ".join(str(error).removeprefix("Error: ").split())
        raise BadInput(f"{path} cannot be used by MuJoCo: {complaint}") from None
    if not 0 < model.opt.timestep < 1:
        raise BadInput(f"{path} has a timestep of {model.opt.timestep} s; expected more than 0 and less than 1 s")
    stated, step = stated_period(model), model.opt.timestep
    period = DEFAULT_CONTROL_DT if stated is None else stated
    if not 0 < period < 10:
        raise BadInput(f"{path} has a control_dt of {period} s; expected 0 to 10 s")
    return RobotModel(name, source, spec, model, (*warnings, *assumptions(spec, model)), max(1, round(period / step)) * step)


def _urdf(path: Path, floating: bool, packages: Sequence[Path]) -> tuple[mujoco.MjSpec, list[str]]:
    """The model of a URDF with drives, and what was assumed."""
    urdf = read_urdf(path, MAX_BYTES, packages, floating)
    spec = urdf.spec
    said = [*urdf.sentences, *name_unnamed(spec), *put_drives(urdf), *part_overlaps(spec)]
    if not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in spec.joints):
        said.append("no floating joint: the base is fixed to the world (--floating-base lets it move)")
    return spec, said


def _total_mass(spec: mujoco.MjSpec) -> list[str]:
    """Write the masses that a stated total (settotalmass) comes to into the bodies, in place, as MuJoCo is to do without it."""
    total = spec.compiler.settotalmass
    if total <= 0:
        return []
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # MuJoCo's, that this will end one day
        model = spec.compile()
    spec.compiler.settotalmass = -1
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO
    for body in (body for body in spec.bodies[1:] if model.body(body.name).mass[0] > 0):
        like = model.body(body.name)
        body.explicitinertial, body.mass, body.fullinertia = True, like.mass[0], np.full(6, np.nan)
        body.ipos, body.iquat, body.inertia = like.ipos, like.iquat, like.inertia
    return [f"masses are scaled to the total of {total:g} kg that the file states (settotalmass)"]


def _float(spec: mujoco.MjSpec, path: Path) -> list[str]:
    """Let the base of an MJCF move freely, in place."""
    model = spec.copy().compile()
    if base_joint(model) is not None:
        return []
    root = base_body(model)
    if not root or model.body_jntnum[root]:
        raise BadInput(f"{path}: its base cannot be let go, since it moves on a joint of its own or there is none")
    before = take_keyframes(spec)
    spec.body(model.body(root).name).add_freejoint(name="floating_base")
    put_keyframes(spec, before)
    return []


def _add_floor(spec: mujoco.MjSpec, model: mujoco.MjModel, height: float) -> str:
    """Put a floor at z = 0 that everything can touch into a model that has none, and the robot onto it; what was assumed."""
    if not np.isfinite(height):
        return "the base is free, but no geom of the robot can touch a floor: it falls; hold it (--in-air), or add geoms"
    taken = {geom.name for geom in spec.geoms}
    name = next(n for n in ("floor", "gapless_floor") if n not in taken)
    types, affinities = (int(np.bitwise_or.reduce(bits)) for bits in (model.geom_contype, model.geom_conaffinity))
    plane = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [0, 0, 0.05], "rgba": [0.62, 0.65, 0.68, 1]}
    spec.worldbody.add_geom(name=name, contype=affinities, conaffinity=types, **plane)
    base = base_joint(model)
    assert base is not None  # else no ground is missing
    place = int(model.jnt_qposadr[base]) + 2
    body = spec.body(model.body(model.jnt_bodyid[base]).name)
    body.pos = np.asarray(body.pos) - [0.0, 0.0, height]
    for key in (key for key in spec.keys if len(key.qpos)):
        pose = np.array(key.qpos)
        pose[place] -= height
        key.qpos = pose
    return "the base is free, but there is no ground: the robot was put onto a floor, on which it stands in its home pose"


def _menagerie(name: str) -> Path:
    """The scene of a Menagerie robot, downloaded on first use or read under MENAGERIE_ROOT."""
    try:
        import mujoco_menagerie
    except ImportError:
        raise BadInput(f"menagerie:{name} needs the package mujoco-menagerie: pip install mujoco-menagerie") from None
    if name not in mujoco_menagerie.names():
        raise unknown("Menagerie robot", name, mujoco_menagerie.names())
    try:
        return Path(mujoco_menagerie.get(name).xml())
    except (mujoco_menagerie.MenagerieError, OSError) as error:
        raise BadInput(f"menagerie:{name} is not available: {error}; offline, set MENAGERIE_ROOT to a copy") from None
