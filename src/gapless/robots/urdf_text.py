"""What URDF files in use write otherwise than the standard says, put right: stray text, vectors, elements that repeat.

Other programs read such files without a word (urdfdom, PyBullet), and MuJoCo refuses them.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from gapless.errors import BadInput
from gapless.report import few

AROUND = "\ufeff\0 \t\r\n"
"""What may stand before and after the XML without being part of it."""
VECTORS = ("xyz", "rpy", "scale", "size")
"""Attributes that hold three numbers."""
SINGLE = ("origin", "axis", "parent", "child", "limit", "mimic", "dynamics", "inertial", "mass", "inertia", "geometry")
"""Elements that occur once in theirs; of several the first counts, as in ROS."""


def put_right(robot: Element) -> Iterator[str]:
    """Make a URDF one that MuJoCo reads, in place; without what is only looked at; a sentence for what was ignored."""
    for link in robot.findall("link"):
        for visual in link.findall("visual"):  # physics does not need it
            link.remove(visual)
    parents = [*robot.findall("link"), *robot.findall("joint")]
    repeats, longer = [], []
    for parent in parents:
        for element in list(parent.iter()):
            for tag in SINGLE:
                for again in element.findall(tag)[1:]:
                    element.remove(again)
                    repeats.append(f"<{tag}> of {parent.get('name', '')}")
            more = [_vector(element, name, parent) for name in VECTORS if name in element.attrib]
            longer += [f"<{element.tag}> of {parent.get('name', '')}"] * any(more)
        if parent.get("type") == "spherical" and (limit := parent.find("limit")) is not None:
            parent.remove(limit)  # of an axis, which it does not have
    if repeats:
        yield f"elements that may occur once are there again, and the first counts: {few(dict.fromkeys(repeats))}"
    if longer:
        yield f"vectors with more than three numbers, of which the first three count: {few(dict.fromkeys(longer))}"


def _vector(element: Element, name: str, parent: Element) -> bool:
    """Write three numbers as such, in place; whether there were more."""
    stated = element.attrib[name]
    try:
        numbers = [float(word) for word in stated.replace(",", " ").split()]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and name == "scale":
        numbers *= 3
    if len(numbers) < 3:
        expected = "run xacro first" if "$" in stated else "three numbers were expected"
        raise BadInput(f"<{element.tag} {name}={stated!r}> of {parent.tag} {parent.get('name', '')!r}: {expected}")
    element.set(name, " ".join(repr(number) for number in numbers[:3]))
    return len(numbers) > 3
