"""Twin: a MuJoCo model plus the mechanisms that may be wrong about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from gapless import robots
from gapless.errors import BadInput, unknown
from gapless.twin import callback, path, save
from gapless.twin.belief import Belief
from gapless.twin.mechanism import Bound, Drive, Fields, Mechanism, ValueBlocks, drives
from gapless.twin.mechanisms import (
    Armature,
    Contact,
    Disturbance,
    Friction,
    Gains,
    Inertia,
    Latency,
    Motor,
    Offset,
    Sensors,
)
from gapless.twin.space import Array, Space


def defaults() -> tuple[Mechanism, ...]:
    """The mechanisms that any robot has, in the order in which they act. Backlash and flex change the joints: ask for them."""
    return (
        Latency(),
        Gains(),
        Motor(),
        Friction(),
        Armature(),
        Inertia(),
        Offset(),
        Contact(),
        Sensors(),
        Disturbance(),
    )


@dataclass(frozen=True)
class Twin:
    """A compiled model with its mechanisms installed.

    twin = Twin.load("quadruped")
    twin.space.match("friction.*")
    twin.save("twin.xml", twin.space.values({"friction.coulomb/*_calf": 0.4}))
    """

    name: str
    spec: mujoco.MjSpec
    """The model as MuJoCo saves it (angles in radians, classes resolved), with what the mechanisms added."""
    model: mujoco.MjModel
    mechanisms: tuple[Mechanism, ...]
    bound: tuple[Bound, ...]
    control_dt: float
    """Control period [s], a whole number of physics steps."""
    warnings: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str],
        mechanisms: Sequence[Mechanism] | None = None,
        add: Sequence[Mechanism] = (),
        control_dt: float | None = None,
        timestep: float | None = None,
        in_air: bool = False,
    ) -> Twin:
        """A twin of a built-in robot, an MJCF or URDF file, or `menagerie:NAME`.

        Args:
            source: name or path.
            mechanisms: what may be wrong; `defaults()` unless given.
            add: mechanisms besides those; one of the same class replaces a default.
            control_dt: control period [s]; the model's own `control_dt` unless given.
            timestep: physics step [s]; the model's own unless given.
            in_air: hold the floating base fixed, a metre up: the robot hangs in a frame.
        """
        robot = robots.load(source)
        chosen = list(defaults() if mechanisms is None else mechanisms)
        for extra in add:
            same = next((i for i, m in enumerate(chosen) if type(m) is type(extra)), None)
            if same is None:
                chosen.append(extra)
            else:
                chosen[same] = extra
        spec = save.hang(robot.spec) if in_air else robot.spec
        return cls.build(spec, chosen, control_dt or robot.control_dt, robot.name, robot.warnings, timestep)

    @classmethod
    def build(
        cls,
        spec: mujoco.MjSpec,
        mechanisms: Iterable[Mechanism],
        control_dt: float,
        name: str = "",
        warnings: Sequence[str] = (),
        timestep: float | None = None,
    ) -> Twin:
        """Install mechanisms into a copy of a spec and compile it."""
        mechanisms = tuple(mechanisms)
        spec = save.canonical(spec)
        if timestep is not None:
            spec.option.timestep = timestep
        substeps = control_dt / spec.option.timestep
        if abs(substeps - round(substeps)) > 1e-6 or substeps < 0.5:
            raise BadInput(
                f"the control period {control_dt:g} s is not a whole number of physics steps of {spec.option.timestep:g} s"
            )
        warnings = [*warnings, *save.part_from_base(spec)]
        poses = save.take_keyframes(spec)
        for mechanism in mechanisms:
            mechanism.install(spec)
        save.put_keyframes(spec, poses)
        model = spec.compile()
        return cls(
            name or spec.modelname,
            spec,
            model,
            mechanisms,
            tuple(m.bind(model) for m in mechanisms),
            round(substeps) * spec.option.timestep,
            tuple(warnings),
        )

    @property
    def substeps(self) -> int:
        """Physics steps in a control period."""
        return round(self.control_dt / self.model.opt.timestep)

    @cached_property
    def drives(self) -> tuple[Drive, ...]:
        """The driven joints in the order of the actuators: the columns of every joint signal."""
        return tuple(drives(self.model))

    @cached_property
    def joints(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.drives)

    @cached_property
    def space(self) -> Space:
        """All parameters of all mechanisms."""
        return Space(tuple(p for b in self.bound for p in b.parameters))

    @cached_property
    def _where(self) -> dict[str, tuple[int, str, int]]:
        """Parameter name to mechanism, quantity and column."""
        out: dict[str, tuple[int, str, int]] = {}
        for i, b in enumerate(self.bound):
            columns: dict[str, int] = {}
            for p in b.parameters:
                column = columns.setdefault(p.quantity, 0)
                out[p.name] = (i, p.quantity, column)
                columns[p.quantity] = column + 1
        return out

    @cached_property
    def _nominal(self) -> list[dict[str, Array]]:
        """Nominal values by mechanism and quantity."""
        out = []
        for b in self.bound:
            block: dict[str, list[float]] = {}
            for p in b.parameters:
                block.setdefault(p.quantity, []).append(p.nominal)
            out.append({quantity: np.array(v) for quantity, v in block.items()})
        return out

    @cached_property
    def path(self) -> dict[str, Array]:
        """The command and sensor path before any value is written."""
        return path.neutral(len(self.drives))

    def base(self, name: str) -> Array:
        """A model, option (`opt.`) or path (`path.`) field as the twin has it before any value is written."""
        if name.startswith("path."):
            return self.path[name]
        owner, _, attribute = name.rpartition(".")
        return np.asarray(getattr(self.model.opt if owner else self.model, attribute))

    def accepts(self, space: Space) -> None:
        """Raise unless every parameter of a space is one of this twin's."""
        for p in space.parameters:
            for member in p.members or (p.name,):
                if member not in self._where:
                    raise BadInput(f"{unknown('parameter', member, self._where)} (in a belief that is not about {self.name})")
        for name in space.fixed:
            if name not in self._where:
                raise unknown("parameter", name, self._where)

    def expand(self, values: ArrayLike, space: Space) -> Array:
        """Values over any space of this twin's parameters as values over all of them. Shape: (n, parameters)."""
        self.accepts(space)
        spread = space.spread(values)
        full = np.tile(self.space.nominal, (len(np.atleast_2d(values)), 1))
        for name, column in spread.items():
            full[:, self._column[name]] = column
        return full

    @cached_property
    def _column(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.space.names)}

    def fields(self, values: ArrayLike, space: Space | None = None) -> Fields:
        """Every field that the mechanisms write, for n vectors of parameters.

        Args:
            values: shape (n, parameters) over `space`.
            space: the twin's own unless given; parameters it lacks are nominal.
        """
        space = self.space if space is None else space
        if space is not self.space:
            self.accepts(space)
        values = np.atleast_2d(np.asarray(values, float))
        space.check(values)
        n = len(values)
        blocks = [ValueBlocks({q: np.tile(v, (n, 1)) for q, v in block.items()}, n) for block in self._nominal]
        for name, column in space.spread(values).items():
            i, quantity, at = self._where[name]
            blocks[i][quantity][:, at] = column
        fields = Fields(self.base, n)
        for b, block in zip(self.bound, blocks, strict=True):
            b.apply(fields, block)
        return fields

    def compile(self, values: ArrayLike, space: Space | None = None) -> mujoco.MjModel:
        """The model at one vector of parameters. What acts in the command and sensor path is not in it."""
        return self._compile(self.fields(values, space))

    def _compile(self, fields: Fields) -> mujoco.MjModel:
        import copy

        model = copy.copy(self.model)
        for name, array in fields.items():
            if name.startswith("opt."):
                getattr(model.opt, name[4:])[:] = array[0]
            elif not name.startswith("path."):
                getattr(model, name)[:] = array[0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        return model

    def save(self, path: str | os.PathLike[str], values: ArrayLike | None = None, space: Space | None = None) -> None:
        """Write an ordinary MJCF with values baked in (nominal unless given). The file says what a plain MuJoCo lacks."""
        fields = self.fields(self.space.nominal if values is None else values, None if values is None else space)
        save.write(path, self.spec, self._compile(fields), fields, self.drives)

    @property
    def needs_callback(self) -> bool:
        """Whether stepping this twin needs the friction callback (see `gapless.twin.callback`)."""
        return callback.needed(self.model)

    def check_belief(self, belief: Belief) -> None:
        """Raise unless a belief is over this twin's parameters."""
        self.accepts(belief.space)
