"""Twin: a MuJoCo model plus the mechanisms that may be wrong about it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.arrays import Array
from gapless.errors import BadInput, unknown
from gapless.report import Section
from gapless.robots import RobotModel, choose_joints, load_robot
from gapless.twin import callback, drive_law, learned, path, prepare, quantities, save
from gapless.twin.mechanism import Bound, Fields, Mechanism, Motion, StepState, Values, field_of
from gapless.twin.mechanisms import MECHANISMS, defaults
from gapless.twin.mechanisms.gains import kept_gains
from gapless.twin.space import Parameter, Space


@dataclass(frozen=True, repr=False)
class Twin(RobotModel):
    """A robot's model with mechanisms installed; its spec is as MuJoCo saves it (angles in radians, classes resolved).

    twin = Twin.load("quadruped")
    twin.space.match("friction.*")
    twin.save("twin.xml", twin.space.values({"friction.coulomb/*_calf": 0.4}))
    """

    mechanisms: tuple[Mechanism, ...]
    bound: tuple[Bound, ...]

    def described(self) -> Section:
        robot, kinds = super().described(), ", ".join(type(m).__name__.lower() for m in self.mechanisms)
        return dataclasses.replace(robot, title=f"{robot.title}; {len(self.space)} parameters of {kinds}")

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str] | RobotModel,
        mechanisms: Sequence[Mechanism] | None = None,
        add: Sequence[Mechanism] = (),
        control_dt: float | None = None,
        timestep: float | None = None,
        in_air: bool = False,
    ) -> Twin:
        """A twin of a built-in robot, an MJCF or URDF file, or `menagerie:NAME`.

        Args:
            source: name or path, or what `load_robot` gave.
            mechanisms: what may be wrong; `defaults()` unless given.
            add: mechanisms besides those; those of a default's class replace it, in its place.
            control_dt: control period [s]; the model's own `control_dt` unless given.
            timestep: physics step [s]; the model's own unless given.
            in_air: hold the floating base fixed, a metre up: the robot hangs in a frame.
        """
        robot = source if isinstance(source, RobotModel) else load_robot(source)
        chosen: list[Mechanism] = []
        for usual in defaults() if mechanisms is None else mechanisms:
            instead = [m for m in add if type(m) is type(usual)]
            chosen += instead or [usual]
        chosen += [m for m in add if m not in chosen]
        spec = prepare.hang(robot.spec) if in_air else robot.spec
        twin = cls.build(spec, chosen, control_dt or robot.control_dt, robot.name, robot.warnings, timestep)
        return dataclasses.replace(twin, source=robot.source)

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
        spec = prepare.canonical(spec)
        if timestep is not None:
            spec.option.timestep = timestep
        substeps = control_dt / spec.option.timestep
        if abs(substeps - round(substeps)) > 1e-6 or substeps < 0.5:
            raise BadInput(
                f"the control period {control_dt:g} s is not a whole number of physics steps of {spec.option.timestep:g} s"
            )
        warnings = [*warnings, *prepare.in_joint_units(spec), *prepare.part_from_base(spec)]
        prepare.install(spec, mechanisms)
        model = spec.compile()
        learned.must_fit(model, same_step=timestep is None)
        drive_law.must_fit(model)
        period, bound = round(substeps) * spec.option.timestep, tuple(m.bind(model) for m in mechanisms)
        return cls(name or spec.modelname, "", spec, model, tuple(warnings), period, mechanisms, bound)

    def plus(self, *mechanisms: Mechanism, centre: Mapping[str, float] | None = None) -> Twin:
        """The same twin with more mechanisms installed, and friction's angles counted from a centre [rad] by joint.

        A mechanism takes the place of a usual one of its class (a motor with a torque-speed line that of a plain motor).
        """
        spec = self.spec.copy()
        prepare.install(spec, mechanisms)
        callback.recentre(spec, centre or {})
        usual = defaults()
        instead = {type(m): m for m in mechanisms}
        kept = [instead.pop(type(m), m) if m in usual else m for m in self.mechanisms]
        model, every = spec.compile(), (*kept, *(m for m in mechanisms if all(m is not k for k in kept)))
        return dataclasses.replace(self, spec=spec, model=model, mechanisms=every, bound=tuple(m.bind(model) for m in every))

    def restated(self, stated: Mapping[str, float]) -> Twin:
        """The same twin with other numbers in its model: parameter name to what is nominal from now on."""
        values = self.space.nominal.copy()
        for name, value in stated.items():
            values[self._column[name]] = value
        fields = self.fields(values)
        spec = self.spec.copy()
        save.bake(spec, self._compile(fields), fields)
        model = spec.compile()
        twin = dataclasses.replace(self, spec=spec, model=model, bound=tuple(m.bind(model) for m in self.mechanisms))
        # what no model holds, such as delays, starts from another value instead
        shifted = np.tile(twin.space.nominal, (len(stated) + 1, 1))
        for row, (name, value) in enumerate(stated.items()):
            shifted[row, twin._column[name]] = value
        after = {name: array for name, array in twin.fields(shifted).items() if not name.startswith("path.")}
        outside = {
            name: value
            for row, (name, value) in enumerate(stated.items())
            if all(np.allclose(array[row], array[-1], rtol=1e-9, atol=1e-12) for array in after.values())
        }
        return dataclasses.replace(twin, bound=_from(twin.bound, outside))

    def at_step(self, seconds: float) -> Twin:
        """The same twin with another physics step [s]."""
        spec = self.spec.copy()
        spec.option.timestep = seconds
        return dataclasses.replace(self, spec=spec, model=spec.compile())

    def only(self, joints: Sequence[str], why: str) -> Twin:
        """The same twin of some of its joints; the others are held, or moved as a log says.

        why: the others are left out, as the warning about them says it.
        """
        chosen = choose_joints(self, joints, why)
        if chosen is self:
            return self
        bound = tuple(m.bind(chosen.model) for m in self.mechanisms)
        stated = {p.name: p.nominal for p in self.space.parameters}
        return dataclasses.replace(
            self, spec=chosen.spec, model=chosen.model, warnings=chosen.warnings, bound=_from(bound, stated)
        )

    def suspects(self, motion: Motion) -> list[tuple[Mechanism, tuple[Parameter, ...]]]:
        """Mechanisms that this twin lacks and its robot may have, judging by how it moved, and what parameters they add."""
        out = []
        for mechanism in (kind.suspected(self.model, motion) for kind in self._lacking):
            if mechanism is not None:
                with contextlib.suppress(BadInput):  # joints that cannot be parted, drives without a torque limit
                    added = [p for p in self.plus(mechanism).space.parameters if p.name not in self._column]
                    out.append((mechanism, tuple(added)))
        return out

    def rivals(self, motion: Motion) -> dict[str, Twin]:
        """Causes that this twin lacks and its robot may have, and the twin with each, at values at which it does nothing."""
        out = {}
        for kind in self._lacking:
            if (mechanism := kind.rival(self.model, motion)) is not None:
                spec = self.spec.copy()
                spec.option.timestep *= kind.rival_step
                with contextlib.suppress(BadInput):
                    twin = dataclasses.replace(self, spec=spec).plus(mechanism)
                    added = (quantities.cause(p.name) for p in twin.space.parameters if p.name not in self._column)
                    if (cause := next((cause for cause in added if cause), None)) is not None:
                        out[cause] = twin
        return out

    @property
    def _lacking(self) -> list[type[Mechanism]]:
        """Mechanisms that this twin does not have in a form of its own."""
        special = {type(m) for m in self.mechanisms if m not in defaults()}
        return [kind for kind in MECHANISMS.values() if kind not in special]

    @cached_property
    def space(self) -> Space:
        """All parameters of all mechanisms."""
        return Space(tuple(p for b in self.bound for p in b.parameters))

    @cached_property
    def _blocks(self) -> list[dict[str, slice | list[int]]]:
        """Columns of the twin's space by mechanism and quantity."""
        out: list[dict[str, slice | list[int]]] = []
        column = 0
        for b in self.bound:
            columns: dict[str, list[int]] = {}
            for p in b.parameters:
                columns.setdefault(p.quantity, []).append(column)
                column += 1
            whole = {q: list(range(c[0], c[-1] + 1)) == c for q, c in columns.items()}
            out.append({q: slice(c[0], c[-1] + 1) if whole[q] else c for q, c in columns.items()})
        return out

    @cached_property
    def path(self) -> dict[str, Array]:
        """The command and sensor path before any value is written."""
        return path.neutral(len(self.drives))

    def _as_modelled(self, name: str) -> Array:
        """A model, option (`opt.`) or path (`path.`) field as the twin has it before any value is written."""
        return self.path[name] if name.startswith("path.") else field_of(self.model, name)

    def accepts(self, space: Space) -> None:
        """Raise unless every parameter of a space is one of this twin's."""
        for p in space.parameters:
            for member in p.members or (p.name,):
                if member not in self._column:
                    raise BadInput(f"{unknown('parameter', member, self._column)} (in a belief that is not about {self.name})")
        for name in space.fixed:
            if name not in self._column:
                raise unknown("parameter", name, self._column)

    def expand(self, values: ArrayLike, space: Space | None) -> Array:
        """Values over a space of its parameters (its own if None) as values over all of them. Shape: (n, parameters)."""
        base, take, put = self._plan(self.space if space is None else space)
        values = np.atleast_2d(np.asarray(values, float))
        full = np.empty((len(values), len(base)))
        full[:] = base
        full[:, put] = values[:, take]
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
        every = self.expand(values, space)
        self.space.check(every)
        fields = Fields(self._as_modelled, len(every))
        for bound, mine in self._by_mechanism(every):
            bound.apply(fields, mine)
        return fields

    def force(self, values: ArrayLike, space: Space | None = None) -> Callable[[StepState], Array] | None:
        """The sum of the forces that mechanisms compute while stepping (see `Bound.force`), or None where none does.

        Args:
            values: shape (n, parameters) over `space`.
            space: the twin's own unless given; parameters it lacks are nominal.
        """
        if not any(b.force for b in self.bound):
            return None
        parts = [(b.force, mine) for b, mine in self._by_mechanism(self.expand(values, space)) if b.force is not None]
        return lambda state: np.sum([force(state, mine) for force, mine in parts], axis=0)

    def _by_mechanism(self, full: Array) -> Iterator[tuple[Bound, Values]]:
        """Each mechanism with its part of values (n, parameters) over the twin's space."""
        for bound, block in zip(self.bound, self._blocks, strict=True):
            yield bound, Values({q: full[:, columns] for q, columns in block.items()}, len(full))

    def _plan(self, space: Space) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """Where a space's values go among all of the twin's: the vector they are put into, from which columns, to which.

        Kept for the last space, as worlds that reset write over the same one again and again.
        """
        if self._last.get("space") is not space:
            self.accepts(space)
            base = self.space.nominal.copy()
            for name, value in space.fixed.items():
                base[self._column[name]] = value
            pairs = [(i, self._column[name]) for i, p in enumerate(space.parameters) for name in p.members or (p.name,)]
            take, put = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
            self._last.update(space=space, plan=(base, take, put))
        return self._last["plan"]

    @cached_property
    def _last(self) -> dict[str, Any]:
        return {}

    def compile(self, values: ArrayLike, space: Space | None = None) -> mujoco.MjModel:
        """The model at one vector of parameters. What acts in the command and sensor path is not in it."""
        return self._compile(self.fields(values, space))

    def _compile(self, fields: Fields) -> mujoco.MjModel:
        model = copy.copy(self.model)
        for name, array in fields.items():
            if not name.startswith("path."):
                field_of(model, name)[:] = array[0]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        return model

    def save(self, path: str | os.PathLike[str], values: ArrayLike | None = None, space: Space | None = None) -> None:
        """Write an ordinary MJCF with values baked in (nominal unless given). The file says what a plain MuJoCo lacks."""
        fields = self.fields(self.space.nominal if values is None else values, None if values is None else space)
        computed = [type(m).__name__.lower() for m, b in zip(self.mechanisms, self.bound, strict=True) if b.force is not None]
        save.write(path, self.spec, self._compile(fields), fields, self.drives, self.stated_gains, computed)

    @cached_property
    def stated_gains(self) -> dict[str, tuple[float, float]]:
        """By joint the kp and kd that a log states if its drive is as the twin's nominal one: those of the model, or where they
        were fitted those that the logs stated then."""
        nominal = dict(zip(self.space.names, self.space.nominal.tolist(), strict=True))
        own = {joint: (nominal.get(f"gains.kp/{joint}", 0.0), nominal.get(f"gains.kd/{joint}", 0.0)) for joint in self.joints}
        return {joint: both for joint, both in own.items() if any(both)} | kept_gains(self.model)


def _from(bound: Iterable[Bound], stated: Mapping[str, float]) -> tuple[Bound, ...]:
    """Mechanisms with other nominal values of some parameters."""
    return tuple(
        dataclasses.replace(b, parameters=[dataclasses.replace(p, nominal=stated.get(p.name, p.nominal)) for p in b.parameters])
        for b in bound
    )
