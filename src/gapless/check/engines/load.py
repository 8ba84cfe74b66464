"""A robot in an engine by the engine's name; a missing engine says how it is installed."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco

from gapless.arrays import Array
from gapless.check.engines.canonical import Canonical, canonical
from gapless.check.engines.engine_world import Base, EngineWorld, ReadBack, Stepped, differences
from gapless.check.engines.mujoco import MujocoWorld
from gapless.errors import BadInput, must_exist

ENGINES = {"mujoco": "mujoco", "drake": "pydrake", "sapien": "sapien", "pybullet": "pybullet"}
"""Name to the Python package that it needs."""
ADAPTERS = {"drake": "DrakeRobot", "sapien": "SapienRobot", "pybullet": "PybulletRobot"}


@dataclass(frozen=True)
class EngineRobot:
    """A robot in an engine."""

    engine: str
    model: Canonical
    world: EngineWorld
    timestep: float
    """Of physics [s]."""
    wrong: tuple[str, ...]
    """Sentences: what the engine has otherwise than the model, which must not be."""
    lost: tuple[str, ...]
    """Sentences: what the engine cannot express."""

    def start(self, q: Array, base: Base) -> None:
        """Put it somewhere at rest. q: all joints, in the order of `model.joints`, as MuJoCo counts."""
        self.world.reset(q, base)

    def hold(self, command: Array, seconds: float) -> None:
        """Let time pass under a command of the drives."""
        self.world.hold(command, max(1, round(seconds / self.timestep)))


def installed(engine: str) -> bool:
    """Whether an engine can be used here."""
    return find_spec(ENGINES[engine]) is not None


def check_engines(names: tuple[str, ...]) -> None:
    """Raise for an engine that does not exist or is not installed."""
    must_exist("engine", names, ENGINES)
    if missing := [name for name in names if not installed(name)]:
        raise BadInput(
            f"{', '.join(missing)} is not installed: pip install 'gapless[engines]' (or pip install {' '.join(missing)})"
        )


def build(engine: str, model: mujoco.MjModel, home: Array, control_dt: float, name: str = "robot") -> EngineRobot:
    """A robot in an engine, from a compiled MuJoCo model.

    Args:
        engine: one of `ENGINES`.
        model: with the values that it is to have.
        home: its home pose, shape (nq,).
        control_dt: time between two commands [s], of which physics steps are a part.
        name: of the robot.
    """
    check_engines((engine,))
    robot = canonical(model, home, name)
    if engine == "mujoco":
        world = MujocoWorld(model, tuple(j.name for j in robot.joints))
        return EngineRobot(engine, robot, world, float(model.opt.timestep), (), ())
    longest = min(robot.stiffest, float(model.opt.timestep))
    timestep = control_dt / max(1, -int(-control_dt // longest))
    with tempfile.TemporaryDirectory(prefix="gapless_engine_") as folder:
        write_meshes(robot, Path(folder))
        adapter = _adapter(engine)(robot, timestep, Path(folder))
    read: ReadBack = adapter.read_back()
    return EngineRobot(
        engine,
        robot,
        Stepped(adapter, robot, timestep),
        timestep,
        tuple(differences(robot, engine, read)),
        (*robot.lost, *adapter.lacks),
    )


def write_meshes(robot: Canonical, folder: Path) -> None:
    """Write the robot's meshes where its URDF will be."""
    for shape in robot.shapes:
        if shape.kind == "mesh":
            (folder / shape.file).write_text(shape.obj())


def _adapter(engine: str) -> Callable[..., Any]:
    return getattr(import_module(f"gapless.check.engines.{engine}"), ADAPTERS[engine])
