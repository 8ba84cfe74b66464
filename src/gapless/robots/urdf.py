"""URDF made fit for MuJoCo: meshes found, links without mass and impossible inertias repaired, and a sentence for each.

What is only looked at is left out, as physics does not need it. Masses are those that the file states: a link without
<inertial> is a massless frame, as URDF means it, and not a body of water as MuJoCo would guess from its geometry.
"""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.files import text
from gapless.report import few
from gapless.robots.meshes import hull_of, readable, resolve
from gapless.robots.urdf_text import AROUND, put_right

MOVING = ("revolute", "continuous", "prismatic", "floating", "planar")
SPECK = 1e-3, 0.01
"""Mass [kg] and radius [m] of what is put where a link must move and has no mass: a gram, which no robot notices."""
THINNEST = 1e-3  # m: radius of gyration below which a repaired inertia does not go
LEAST = 1e-12  # kg m2: no less, as MuJoCo takes 1e-15 for nothing
ROUNDING = 1e-3  # share of an inertia that the digits of a file may be wrong by without being news
PATIENCE = 60.0  # s that xacro may take


@dataclass(frozen=True)
class Urdf:
    """A URDF as MuJoCo has it, before drives are put in."""

    robot: Element
    """The file's own words."""
    spec: mujoco.MjSpec
    sentences: list[str]
    """What was assumed, repaired or left out."""


def read_urdf(path: Path, limit: int, packages: Sequence[Path] = (), floating: bool = False) -> Urdf:
    """Read a URDF.

    Args:
        path: a .urdf file, or a .xacro file where the program xacro is installed.
        limit: its largest size [bytes].
        packages: folders to look for `package://` in first.
        floating: whether the root moves freely.
    """
    try:
        robot = ElementTree.fromstring((_xacro(path) if path.suffix.lower() == ".xacro" else text(path, limit)).strip(AROUND))
    except ElementTree.ParseError as error:
        raise BadInput(f"{path} is not valid XML ({error})") from None
    if robot.tag != "robot":
        raise BadInput(f"{path} is no URDF: its first element is <{robot.tag}>, not <robot>")
    if not robot.findall("link"):
        raise BadInput(f"{path} has no links, so there is no robot in it")
    sentences = [*put_right(robot)]
    hulls: dict[str, Array] = {}
    weighed = any(map(_mass, robot.findall("link")))
    sentences += [*_meshes(robot, path, packages, hulls), *_masses(robot), *_unlimited(robot), *_followers(robot)]
    extension = _child(robot, "mujoco")
    _child(extension, "compiler").attrib.update(strippath="false", discardvisual="true", fusestatic="true")
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(robot, encoding="unicode"))
    for mesh in spec.meshes:
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # flat ones have no volume, and masses are stated
        if mesh.file in hulls:
            mesh.uservert, mesh.file = hulls[mesh.file].ravel(), ""
    if weighed:
        for geom in (geom for body in spec.bodies if not body.explicitinertial for geom in body.geoms):
            geom.mass = 0.0
    for joint in (joint for joint in spec.joints if joint.limited == mujoco.mjtLimited.mjLIMITED_AUTO and not any(joint.range)):
        joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE  # continuous, on purpose
    if len(spec.bodies) < 2:
        raise BadInput(f"{path} has no link but the world, so there is no robot in it")
    root = spec.bodies[1]  # also where a link called world is the first, which MuJoCo takes for its own
    if floating and root.joints and root.joints[0].type != mujoco.mjtJoint.mjJNT_FREE:
        raise BadInput(f"{path}: its base cannot be let go, since link {root.name!r} moves against the world on a joint")
    loose = None if root.joints else root.add_freejoint(name="floating_base")
    spec.compile()  # fuses links that do not move into those that do: the root is to stay one, also where it is fixed
    spec.compiler.fusestatic = False
    if loose is not None and not floating:
        spec.delete(loose)
    return Urdf(robot, spec, sentences)


def _child(element: Element, tag: str) -> Element:
    """An element's child, which is made where it has none."""
    child = element.find(tag)
    return ElementTree.SubElement(element, tag) if child is None else child


def _unlimited(robot: Element) -> Iterator[str]:
    """Limits that leave no room are meant as none; in place."""
    names = []
    for joint in robot.findall("joint"):
        limit = joint.find("limit")
        if joint.get("type") in ("revolute", "prismatic") and (
            limit is None or number(limit, "lower") >= number(limit, "upper")
        ):
            names.append(joint.get("name", ""))
            if joint.get("type") == "revolute":
                joint.set("type", "continuous")
    if names:
        yield f"the limits of these joints leave no room, so they have none: {few(names)}"


def _followers(robot: Element) -> Iterator[str]:
    """Joints that follow one that does not move, or is not in the file, follow none; in place."""
    moving = {joint.get("name") for joint in robot.findall("joint") if joint.get("type") in MOVING}
    lost = [j for j in robot.findall("joint") if (mimic := j.find("mimic")) is not None and mimic.get("joint") not in moving]
    for joint in lost:
        joint.remove(_child(joint, "mimic"))
    if lost:
        names = few(joint.get("name", "") for joint in lost)
        yield f"joints mimic one that is not in the file or does not move, so they follow none: {names}"


def _xacro(path: Path) -> str:
    """What xacro makes of a file; it evaluates expressions, so the file must be one that the user trusts."""
    if not (program := which("xacro")):
        raise BadInput(f"{path} needs the program xacro, which is not installed: pip install xacro, or run it elsewhere")
    try:
        return subprocess.run([program, str(path)], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise BadInput(f"{path}: xacro says: {(error.stderr.strip().splitlines() or ['nothing'])[-1]}") from None
    except subprocess.TimeoutExpired:
        raise BadInput(f"{path}: xacro was stopped after {PATIENCE:.0f} s") from None


def _meshes(robot: Element, path: Path, packages: Sequence[Path], hulls: dict[str, Array]) -> Iterator[str]:
    """Let collision meshes name their files; those that cannot be had are left out and named.

    hulls: is filled with the corners of those that MuJoCo does not read, by file.
    """
    missing: list[str] = []
    strange: list[str] = []
    for link in robot.findall("link"):
        for collision in link.findall("collision"):
            if (mesh := collision.find("geometry/mesh")) is None:
                continue
            name = mesh.get("filename", "")
            file = resolve(name, path, packages)
            if file is not None and str(file) not in hulls and not readable(file) and (corners := hull_of(file)) is not None:
                hulls[str(file)] = corners
            if file is not None and (str(file) in hulls or readable(file)):
                mesh.set("filename", str(file))
                continue
            link.remove(collision)
            (missing if file is None else strange).append(name.rpartition("/")[2])
    if missing:
        where = "name their folder with --package, or set ROS_PACKAGE_PATH"
        yield f"collision meshes were not found ({where}), so that these parts touch nothing: {few(missing)}"
    if strange:
        how = "pip install gapless[meshes], or save them as binary .stl or .obj"
        yield f"collision meshes are none that MuJoCo reads ({how}), so that these parts touch nothing: {few(strange)}"


def _masses(robot: Element) -> Iterator[str]:
    """Make every inertia one that a body can have, and give moving links without mass a speck, in place."""
    links = {link.get("name", ""): link for link in robot.findall("link")}
    for link in links.values():
        if not _mass(link) and (inertial := link.find("inertial")) is not None:
            link.remove(inertial)  # MuJoCo refuses a stated zero
    solid = [name for name, link in links.items() if not _mass(link) and link.find("collision") is not None]
    heavy = {name for name, link in links.items() if _mass(link)}
    if not heavy:
        heavy = set(solid)
        yield "no link states a mass: masses are inferred from the geometry at 1000 kg/m3"
    elif solid:
        yield f"links without a stated mass have none, as URDF means it: {few(solid)}"
    repaired = [name for name, link in links.items() if _mass(link) and _repair(link)]
    if repaired:
        yield f"inertias that no body can have were replaced by the nearest that one can have: {few(repaired)}"
    light = [name for name, fixed in _rigid_parts(robot) if name in links and not heavy.intersection(fixed)]
    specks = [name for name in light if name != "world"]  # which MuJoCo takes for its own
    for name in specks:
        mass, radius = SPECK
        _put_inertia(links[name], mass, np.eye(3) * 0.4 * mass * radius**2)
    if specks:
        yield f"links that move and have no mass are given {1000 * SPECK[0]:g} g: {few(specks)}"


def _rigid_parts(robot: Element) -> Iterator[tuple[str, list[str]]]:
    """The root and each link that moves against its parent, with the links that are fixed to it, itself first."""
    children: dict[str, list[str]] = {}
    moving, below = [], set()
    for joint in robot.findall("joint"):
        parent, child = _end(joint, "parent"), _end(joint, "child")
        below.add(child)
        if joint.get("type") in MOVING:
            moving.append(child)
        else:
            children.setdefault(parent, []).append(child)
    roots = [name for link in robot.findall("link") if (name := link.get("name", "")) not in below]
    for name in dict.fromkeys([*moving, *roots]):
        parts = [name]
        for part in parts:
            parts += [child for child in children.get(part, ()) if child not in parts]
        yield name, parts


def _end(joint: Element, which_end: str) -> str:
    """The link at an end of a joint."""
    end = joint.find(which_end)
    return "" if end is None else end.get("link", "")


def _mass(link: Element) -> float:
    """The mass that a link states [kg]; 0 where it states none."""
    mass = link.find("inertial/mass")
    return 0.0 if mass is None else max(0.0, number(mass, "value"))


def number(element: Element, name: str, otherwise: float = 0.0) -> float:
    """A number among an element's attributes."""
    try:
        value = float(element.get(name, otherwise))
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise BadInput(f"<{element.tag} {name}={element.get(name)!r}>: a finite number was expected")
    return value


def _repair(link: Element) -> bool:
    """Put a link's inertia among those that a body can have, in place; whether that changed more than its last digits.

    The second moments of a body's mass, of which its inertia is made, cannot be negative (Wensing et al. 2018, IEEE RA-L 3(1)).
    """
    stated = link.find("inertial/inertia")
    xx, yy, zz, xy, xz, yz = (
        0.0 if stated is None else number(stated, f"i{axes}") for axes in ("xx", "yy", "zz", "xy", "xz", "yz")
    )
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moments, axes = np.linalg.eigh(np.trace(inertia) / 2 * np.eye(3) - inertia)
    mass = _mass(link)
    if moments.min() > 0:
        return False
    possible = np.maximum(moments, max(LEAST, mass * THINNEST**2))
    second = axes * possible @ axes.T
    after = np.trace(second) * np.eye(3) - second
    _put_inertia(link, mass, after)
    return bool(abs(after - inertia).max() > ROUNDING * abs(inertia).max() + 2 * max(LEAST, mass * THINNEST**2))


def _put_inertia(link: Element, mass: float, inertia: Array) -> None:
    """State a link's mass [kg] and its inertia about its centre of mass [kg m2]."""
    inertial = link.find("inertial")
    inertial = ElementTree.SubElement(link, "inertial") if inertial is None else inertial
    for old in (*inertial.findall("mass"), *inertial.findall("inertia")):
        inertial.remove(old)
    ElementTree.SubElement(inertial, "mass", value=repr(float(mass)))
    ElementTree.SubElement(
        inertial, "inertia", {f"i{'xyz'[i]}{'xyz'[j]}": repr(float(inertia[i, j])) for i in range(3) for j in range(i, 3)}
    )
