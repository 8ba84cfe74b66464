"""The meshes that a URDF names: where they lie, and what they look like to MuJoCo."""

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from gapless.arrays import Array

LARGEST = 64 * 2**20  # bytes of a mesh that is converted
MOST_FACES = 200_000  # of an STL file that MuJoCo reads


def resolve(name: str, urdf: Path, packages: Sequence[Path] = ()) -> Path | None:
    """The file that a URDF names; None where it is not to be found.

    Args:
        name: `package://PACKAGE/PATH` (or `model://`), `file://PATH`, or a path, relative to the URDF.
        urdf: the file that names it.
        packages: folders to look in first: of packages, or packages themselves.
    """
    scheme, separator, rest = name.partition("://")
    if not separator or scheme == "file":
        path = Path(unquote(rest) if separator else name)
        return next((p for p in (path, urdf.parent / path) if (p.is_absolute() or p != path) and p.is_file()), None)
    package, _, inside = rest.partition("/")
    return next((p for p in _places(package, inside, urdf, packages) if p.is_file()), None)


def _places(package: str, inside: str, urdf: Path, packages: Sequence[Path]) -> Iterator[Path]:
    """Where a file of a package may lie, likeliest first."""
    ros = [Path(p) for p in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if p]
    ament = [Path(p) / "share" for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    for folder in (*packages, *ros, *ament):
        yield folder / package / inside
        yield folder / inside
    above = urdf.absolute().parents
    for folder in above:
        yield folder / package / inside
        if folder.name == package:
            yield folder / inside
    for folder in above:  # the package's folder has another name here
        yield folder / inside


def readable(file: Path) -> bool:
    """Whether MuJoCo reads a mesh file: OBJ, its own MSH, or binary STL of a bounded size."""
    if file.suffix.lower() != ".stl":
        return file.suffix.lower() in (".obj", ".msh")
    with file.open("rb") as stream:
        head = stream.read(84)
    faces = struct.unpack("<I", head[80:])[0] if len(head) == 84 else 0
    return 0 < faces <= MOST_FACES and file.stat().st_size == 84 + 50 * faces


def hull_of(file: Path) -> Array | None:
    """The corners of the convex hull of any mesh that trimesh reads, which is all that touches in MuJoCo. Shape: (corners, 3).

    None where trimesh (and for .dae files pycollada) is not installed, or the file is not as it should be.
    """
    if file.stat().st_size > LARGEST:
        return None
    with contextlib.suppress(Exception):  # the readers of a dozen formats raise whatever they like at a damaged file
        import trimesh
        from scipy.spatial import ConvexHull

        mesh: Any = trimesh.load(file, force="mesh")
        scale = trimesh.units.unit_conversion(mesh.units, "meters") if mesh.units else 1.0
        points: Array = np.array(mesh.vertices, dtype=np.float64) * scale
        return points[ConvexHull(points).vertices]
    return None
