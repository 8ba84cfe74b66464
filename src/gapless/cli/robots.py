"""`gapless robots`: the built-in robots, or one: its joints, assumptions and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Json

if TYPE_CHECKING:
    from gapless.report import Section
    from gapless.robots import RobotModel


def robots(
    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]", help_behavior_hint="")] = None,
    *,
    about: About = ABOUT,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PNG", help_behavior_hint="")] = None,
    json: Json = False,
) -> None:
    """List the built-in robots, or show one: its joints, what its file leaves open, and a picture.

    For example `gapless robots`, `gapless robots quadruped --out quadruped.png`, `gapless robots my_robot.urdf --json`.

    Args:
        name: A built-in robot, an MJCF or URDF file, or menagerie:NAME.
        out: Draw the robot into this PNG file; nothing is written unless given.
    """
    import json as text

    from rich.console import Console, Group

    from gapless.errors import BadInput
    from gapless.plain import plain
    from gapless.report import in_terminal, notes
    from gapless.robots import BUILT_IN, draw

    if name is None and out:
        raise BadInput(f"say which robot to draw into {out}: gapless robots NAME --out {out}")
    options.can_write(out, *options.PICTURE)
    stated = about.stated()
    if name is None and stated != type(stated)():
        raise BadInput("say which robot the options are of: gapless robots NAME --kp 20")
    chosen = (
        [stated.twin(stated.robot(name))]
        if name and stated.changes
        else [stated.robot(n) for n in ([name] if name else BUILT_IN)]
    )
    first = chosen[0]
    if json:
        more = {"base": first.base, "feet": first.feet, "warnings": first.warnings, "joint_table": first.joint_table}
        print(text.dumps(plain(_summary(first) | more if name else [_summary(r) for r in chosen]), indent=2))
    else:
        table = first.described() if name else _list([_summary(r) for r in chosen])
        Console(highlight=False).print(Group(in_terminal(table), *notes("assumed", first.warnings if name else ())))
    if out:
        draw(first.model, out)
        options.tell(f"drawn into {out}")


def _summary(robot: RobotModel) -> dict[str, Any]:
    """Facts about a robot, and physics steps a second of one thread that holds its home pose."""
    from time import perf_counter

    import mujoco

    from gapless.robots import home_data

    data, steps, start = home_data(robot.model), 0, perf_counter()
    while (elapsed := perf_counter() - start) < 0.2:
        mujoco.mj_step(robot.model, data, 100)
        steps += 100
    facts = {"name": robot.name, "joints": robot.joints, "mass_kg": round(robot.mass, 3), "floating": robot.floating}
    return facts | {"control_dt_s": robot.control_dt, "steps_per_s": round(steps / elapsed)}


def _list(robots: list[dict[str, Any]]) -> Section:
    from gapless.report import Section, Table

    rows = []
    for r in robots:
        facts = [f"{len(r['joints'])}", f"{r['mass_kg']:.2f}", "free" if r["floating"] else "fixed"]
        rows.append([r["name"], *facts, f"{1 / r['control_dt_s']:.0f}", f"{r['steps_per_s']:,}"])
    head = ("robot", "joints", "mass [kg]", "base", "control [Hz]", "steps/s")
    return Section("Built-in robots; gapless robots NAME shows one", table=Table(head, rows))
