"""`gapless robots`: the built-in robots, or one robot with its joints, its assumptions and a picture."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from gapless.robots import RobotModel


def robots(
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = None,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PNG")] = None,
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> None:
    """List the built-in robots, or show one: its joints, what its file leaves open, and a picture.

    For example `gapless robots`, `gapless robots quadruped --out quadruped.png`, `gapless robots my_robot.urdf --json`.

    Args:
        name: A built-in robot, a path to an MJCF or URDF file, or menagerie:NAME.
        out: Draw the robot into this PNG file; NAME.png unless given (none with --json).
        json: Print JSON instead of tables.
    """
    from gapless.errors import BadInput
    from gapless.robots import BUILT_IN, load_robot

    if name is None:
        if out:
            raise BadInput(f"say which robot to draw into {out}: gapless robots NAME --out {out}")
        summaries = [_summary(load_robot(robot)) for robot in BUILT_IN]
        _print_json(summaries) if json else _print_list(summaries)
        return
    robot = load_robot(name)
    if json:
        _print_json(_details(robot))
    else:
        _print_robot(robot)
        out = out or Path(f"{robot.name}.png")
    if out:
        from gapless.robots import draw

        draw(robot.model, out)
        print(f"drawn into {out}", file=sys.stderr)


def _summary(robot: "RobotModel") -> dict[str, Any]:
    return {
        "name": robot.name,
        "joints": robot.joints,
        "mass_kg": round(robot.mass, 3),
        "floating": robot.floating,
        "control_dt_s": robot.control_dt,
        "steps_per_s": round(_steps_per_second(robot)),
    }


def _details(robot: "RobotModel") -> dict[str, Any]:
    from dataclasses import asdict
    from math import isfinite

    joints = [
        {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in asdict(joint).items()}
        for joint in robot.joint_table
    ]
    parts = {"base": robot.base, "feet": robot.feet, "warnings": robot.warnings}
    return _summary(robot) | parts | {"joint_table": joints}


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


def _print_json(value: Any) -> None:
    from json import dumps

    print(dumps(value, indent=2))


def _print_list(summaries: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table("robot", title="Built-in robots", caption="gapless robots NAME shows one", box=SIMPLE_HEAD)
    for heading in ("joints", "mass/kg", "base", "control/Hz", "steps/s"):
        table.add_column(heading, justify="right")
    for robot in summaries:
        table.add_row(
            robot["name"],
            str(len(robot["joints"])),
            f"{robot['mass_kg']:.2f}",
            "free" if robot["floating"] else "fixed",
            f"{1 / robot['control_dt_s']:.0f}",
            f"{robot['steps_per_s']:,}",
        )
    Console().print(table)


def _print_robot(robot: "RobotModel") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    title = f"{robot.name}: {len(robot.joints)} joints, {robot.mass:.2f} kg"
    table = Table(title=escape(title), caption="torque: the largest; units: rad, N m, kg m2", box=SIMPLE_HEAD)
    table.add_column("joint", no_wrap=True)
    table.add_column("range", no_wrap=True, justify="right")
    for heading in ("kp", "kd", "torque", "armature", "friction"):
        table.add_column(heading, justify="right")
    for j in robot.joint_table:
        numbers = (j.kp, j.kd, j.torque_limit, j.armature, j.friction)
        table.add_row(escape(j.name), f"{j.low:.2f} .. {j.high:.2f}", *(f"{number:.4g}" for number in numbers))
    console.print(table)
    for warning in robot.warnings:
        console.print(f"[yellow]assumed[/yellow] {escape(warning)}")
