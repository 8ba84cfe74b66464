"""`gapless robots`: the built-in robots, or one robot with its joints, its assumptions and a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gapless.cli import options
from gapless.cli.options import Json

if TYPE_CHECKING:
    from gapless.robots import RobotModel


def robots(
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PNG", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """List the built-in robots, or show one: its joints, what its file leaves open, and a picture.

    For example `gapless robots`, `gapless robots quadruped --out quadruped.png`, `gapless robots my_robot.urdf --json`.

    Args:
        name: A built-in robot, an MJCF or URDF file, or menagerie:NAME.
        out: Draw the robot into this PNG file; NAME.png unless given (none with --json).
    """
    import json as text

    from rich.console import Console

    from gapless.errors import BadInput
    from gapless.plain import plain
    from gapless.report import in_terminal, notes
    from gapless.robots import BUILT_IN, draw, load_robot

    if name is None and out:
        raise BadInput(f"say which robot to draw into {out}: gapless robots NAME --out {out}")
    chosen = [load_robot(n) for n in ([name] if name else BUILT_IN)]
    if json:
        told = [_summary(robot) for robot in chosen]
        print(text.dumps(plain({**told[0], **_details(chosen[0])} if name else told), indent=2))
    else:
        console = Console(highlight=False)
        console.print(in_terminal(_one(chosen[0]) if name else _all(chosen)))
        for note in notes("assumed", chosen[0].warnings if name else ()):
            console.print(note)
    if name and (out := out or (None if json else Path(f"{chosen[0].name}.png"))):
        draw(chosen[0].model, out)
        options.tell(f"drawn into {out}")


def _summary(robot: "RobotModel") -> dict[str, Any]:
    facts = {"name": robot.name, "joints": robot.joints, "mass_kg": round(robot.mass, 3), "floating": robot.floating}
    return facts | {"control_dt_s": robot.control_dt, "steps_per_s": round(_steps_per_second(robot))}


def _details(robot: "RobotModel") -> dict[str, Any]:
    return {"base": robot.base, "feet": robot.feet, "warnings": robot.warnings, "joint_table": robot.joint_table}


def _steps_per_second(robot: "RobotModel", seconds: float = 0.2) -> float:
    """Physics steps a second of one thread that holds the home pose, rendering and Python left out."""
    from time import perf_counter

    import mujoco

    from gapless.robots import home_data

    data, steps, start = home_data(robot.model), 0, perf_counter()
    while (elapsed := perf_counter() - start) < seconds:
        mujoco.mj_step(robot.model, data, 100)
        steps += 100
    return steps / elapsed


def _all(robots: "list[RobotModel]") -> Any:
    from gapless.report import Section, Table

    rows = []
    for r in robots:
        base, speed = "free" if r.floating else "fixed", f"{_steps_per_second(r):,.0f}"
        rows.append([r.name, str(len(r.joints)), f"{r.mass:.2f}", base, f"{1 / r.control_dt:.0f}", speed])
    head = ("robot", "joints", "mass [kg]", "base", "control [Hz]", "steps/s")
    return Section("Built-in robots; gapless robots NAME shows one", table=Table(head, rows))


def _one(robot: "RobotModel") -> Any:
    from gapless.report import Section, Table

    rows = []
    for j in robot.joint_table:
        numbers = (j.kp, j.kd, j.torque_limit, j.armature, j.friction)
        rows.append([j.name, f"{j.low:.2f} .. {j.high:.2f}", *(f"{number:.4g}" for number in numbers)])
    title = f"{robot.name}: {len(robot.joints)} joints, {robot.mass:.2f} kg; units: rad, N m, kg m2"
    return Section(title, table=Table(("joint", "range", "kp", "kd", "torque limit", "armature", "friction"), rows))
