"""Inertia: mass, centre of mass and inertia tensor of each link, and a payload; physical for every value.

A link is physical when its mass is positive and its second moments about the centre of mass, S = tr(I)/2 1 - I, form a
positive semi-definite matrix (Wensing, Kim, Slotine 2018). Here S = m C (S0 / m0) C' with C lower triangular and the
logarithms of its diagonal as parameters (the log-Cholesky form of Rucker and Wensing 2022, relative to the model's own
tensor), so any parameters at all give a link that could be built.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.errors import unknown
from gapless.robots import base_joint, drives
from gapless.rotations import rotation_matrices
from gapless.twin.mechanism import Bound, Fields, Mechanism, Quantity, Values

TENSOR = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (1, 0), "xz": (2, 0), "yz": (2, 1)}
LINKS = "+ link masses and centres"
MASS = Quantity(
    "inertia.mass",
    "kg",
    remedy="weigh the links: their masses are {ratio} the model's",
    separated={"armature.inertia": "hold several poses: gravity acts on links, not on rotors"},
    rungs=(LINKS,),
    torque_only=True,
    changes="the robot carried something else, or a part was exchanged",
    ranges={"wide": ("x", 0.8, 1.2), "models30": ("x", 0.85, 1.15)},  # Tan et al. 2018; Hwangbo et al. 2019
)
CENTRE = tuple(
    Quantity(
        f"inertia.com_{axis}",
        "m",
        "inertia.com",
        "weigh the robot in several poses: centres of mass are not where the model has them",
        {"offset.encoder": "move faster, or hold several poses"},
        rungs=(LINKS,),
        torque_only=True,
        ranges={"wide": ("base", -1.5, 1.5), "models30": ("+", -0.02, 0.02)},  # Hwangbo et al. 2019: 2 cm
        mirrored=axis == "y",
    )
    for axis in "xyz"
)
SHAPE = tuple(Quantity(f"inertia.tensor_{key}", cause="inertia.tensor") for key in TENSOR)
PAYLOAD = Quantity(
    "inertia.payload",
    "kg",
    remedy="add {value} to the model, or take it off the robot; randomise over what the robot will carry",
    separated={"offset.encoder": "move faster, or hold several poses"},
    conditional=True,
    standing="+ payload on the base",
    changes="the robot carried something else",
    ranges={"wide": ("of mass", 0.0, 0.2)},
)


@dataclass(frozen=True)
class Inertia(Mechanism):
    """Mass [kg] and centre of mass [m, in the link's frame] of links, their tensors where asked for, and a payload [kg]."""

    quantities = (MASS, *CENTRE, *SHAPE, PAYLOAD)
    links: str = "*"
    tensor: str = ""
    """Pattern of the links whose inertia tensor is uncertain too: `tensor_xx` ... are logarithms of stretch along the
    link's axes (0.1 is 10 % longer), `tensor_xy` ... are shears; all 0 in the model."""
    payload: str | None = None
    """The body that carries the payload, at its origin; the floating base, or a held trunk with several limbs (there it has no
    effect), or else the last driven link."""

    def bind(self, model: mujoco.MjModel) -> Bound:
        names = [model.body(b).name for b in range(model.nbody)]
        moving = [b for b in range(1, model.nbody) if model.body_mass[b] > 0 and model.body_weldid[b] > 0]
        links = _pick(self.links, moving, names)
        tensors = _pick(self.tensor, moving, names) if self.tensor else []
        carrier = _carrier(model, self.payload, names)
        parameters = [MASS.factor(names[b], model.body_mass[b], 1.2, 0.03, span=5.0) for b in links]
        for i, centre in enumerate(CENTRE):
            for b in links:
                size, x = _size(model, b), float(model.body_ipos[b, i])
                parameters.append(centre.amount(names[b], x, 0.2 * size, 0.03 * size, x - 2 * size, x + 2 * size))
        for shape in SHAPE:
            parameters += [shape.amount(names[b], 0.0, 0.1, 0.02, -1.0, 1.0) for b in tensors]
        weight = float(model.body_subtreemass[carrier]) or 1.0  # kg, where nothing has mass: such models have no drives
        parameters.append(PAYLOAD.amount("", 0.0, 0.1 * weight, 0.01 * weight, 0.0, 2 * weight))

        def apply(fields: Fields, values: Values) -> None:
            mass, ipos, inertia = fields["body_mass"], fields["body_ipos"], fields["body_inertia"]
            ratio = values["inertia.mass"] / mass[:, links]
            mass[:, links] = values["inertia.mass"]
            inertia[:, links] *= ratio[:, :, None]
            for i, centre in enumerate(CENTRE):
                ipos[:, links, i] = values[centre.name]
            if tensors:
                _stretch(fields, np.array(tensors), np.stack([values[shape.name] for shape in SHAPE], axis=-1))
            if np.any(values["inertia.payload"]):
                _load(fields, carrier, values["inertia.payload"][:, 0])

        return Bound(parameters, apply)


def second_moments(inertia: Array) -> Array:
    """Principal second moments from principal inertias; none is negative for a body that can exist. Shape: (..., 3)."""
    return inertia.sum(axis=-1, keepdims=True) / 2 - inertia


def _pick(pattern: str, moving: list[int], names: list[str]) -> list[int]:
    hits = [b for b in moving if fnmatchcase(names[b], pattern)]
    if not hits and pattern != "*":
        raise unknown("link", pattern, [names[b] for b in moving])
    return hits


def _carrier(model: mujoco.MjModel, payload: str | None, names: list[str]) -> int:
    if payload is not None:
        if payload not in names[1:]:
            raise unknown("link", payload, names[1:])
        return names.index(payload)
    base = base_joint(model)
    if base is not None:
        return int(model.jnt_bodyid[base])
    motors = drives(model)
    limbs = [b for b in range(1, model.nbody) if model.body_weldid[b] and not model.body_weldid[model.body_parentid[b]]]
    held = [int(model.body_parentid[b]) for b in limbs]
    trunks = [b for b in held if b and held.count(b) > 1]
    if trunks:  # a robot that was lifted by its base carries there what it carries on its feet
        return trunks[0]
    return int(model.jnt_bodyid[motors[-1].joint]) if motors else model.nbody - 1


def _size(model: mujoco.MjModel, body: int) -> float:
    """A length typical of the link: its largest radius of gyration."""
    return float(np.sqrt(model.body_inertia[body].max() / model.body_mass[body]))


def _stretch(fields: Fields, links: NDArray[np.int64], log_cholesky: Array) -> None:
    """Deform the mass of links by lower triangular matrices in the frames of the links (n, links, 6); zeros keep their bits."""
    rows, columns = np.nonzero(log_cholesky.any(axis=2))
    if not len(rows):
        return
    body, by = links[columns], log_cholesky[rows, columns]
    c = np.zeros((len(rows), 3, 3))
    for k, (i, j) in enumerate(TENSOR.values()):
        c[:, i, j] = np.exp(by[:, k]) if i == j else by[:, k]
    s = _moments(fields, rows, body)
    _set_moments(fields, rows, body, c @ s @ np.swapaxes(c, 1, 2))


def _load(fields: Fields, carrier: int, payload: Array) -> None:
    """Add a point mass at the origin of a body."""
    rows = np.flatnonzero(payload)
    body = np.full(len(rows), carrier)
    mass, com, extra = fields["body_mass"][rows, body], fields["body_ipos"][rows, body], payload[rows]
    total = mass + extra
    s = _moments(fields, rows, body)
    # two point masses about their common centre: reduced mass times distance squared
    s += (mass * extra / total)[:, None, None] * (com[:, :, None] * com[:, None, :])
    fields["body_mass"][rows, body] = total
    fields["body_ipos"][rows, body] = com * (mass / total)[:, None]
    _set_moments(fields, rows, body, s)


def _moments(fields: Fields, rows: NDArray[np.int64], body: NDArray[np.int64]) -> Array:
    """Second moments of bodies of worlds about their centres of mass, in the frames of the links. Shape: (rows, 3, 3)."""
    axes = rotation_matrices(fields["body_iquat"][rows, body])
    return axes @ (second_moments(fields["body_inertia"][rows, body])[:, :, None] * np.swapaxes(axes, 1, 2))


def _set_moments(fields: Fields, rows: NDArray[np.int64], body: NDArray[np.int64], s: Array) -> None:
    moments, axes = np.linalg.eigh(s)
    axes[:, :, 2] *= np.linalg.det(axes)[:, None]  # right-handed
    moments = np.maximum(moments, 0.0)
    fields["body_inertia"][rows, body] = moments.sum(axis=1, keepdims=True) - moments
    quat = np.empty(4)
    for row, link, matrix in zip(rows, body, axes, strict=True):
        mujoco.mju_mat2Quat(quat, matrix.ravel())
        fields["body_iquat"][row, link] = quat
