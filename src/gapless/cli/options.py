"""Options that several commands share, each worded once; and what commands do alike with results."""

from __future__ import annotations

import json as text
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from gapless.report import Result

Model = Annotated[
    str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL", help="A built-in robot, an MJCF or URDF file, or menagerie:NAME.")
]
Robot = Annotated[str, tyro.conf.arg(help="A built-in robot, an MJCF or URDF file, or menagerie:NAME.")]
Logs = Annotated[
    tuple[Path, ...],
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="LOG...",
        help="Files, SAGE or LeRobot folders, or folders of logs; LOG@0.2:2 is a stretch in seconds.",
        help_behavior_hint="",
    ),
]
Mapping = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="NAME|TOML",
        help="What the files cannot say: so101, go2_inair, double_pendulum, xl330, simple_pendulum, or a TOML file.",
        help_behavior_hint="",
    ),
]
Kp = Annotated[
    float | None,
    tyro.conf.arg(
        metavar="KP",
        help="Proportional gain of all drives [N m/rad], for a model that takes torque and a robot that takes positions.",
        help_behavior_hint="",
    ),
]
Kd = Annotated[
    float | None, tyro.conf.arg(metavar="KD", help="Derivative gain of all drives [N m s/rad].", help_behavior_hint="")
]
Command = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="VX,VY,YAW",
        help="With a policy: what it is asked for, in the order of its contract's commands.",
        help_behavior_hint="",
    ),
]
Preset = Annotated[Literal["none", "narrow", "informed", "wide", "models30"] | None, tyro.conf.arg(help_behavior_hint="")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
InAir = Annotated[
    bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help="The floating base was held fixed.", help_behavior_hint="")
]
Json = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help="Print JSON instead of tables.", help_behavior_hint="")]
Seed = Annotated[int, tyro.conf.arg(help="The same seed gives the same result.")]
Threads = Annotated[int, tyro.conf.arg(help="Threads of physics; 0 for one per core.")]


def log_paths(given: tuple[Path, ...]) -> list[Path]:
    """Every log that was named, or is in a folder that was; at least one."""
    from gapless.errors import BadInput
    from gapless.logs import find

    if not given:
        raise BadInput("name at least one log")
    paths = [path for each in given for path in find(each)]
    if not paths:
        raise BadInput(f"there is no log in {', '.join(map(str, given))}")
    return paths


def pairs(option: str, given: tuple[str, ...]) -> list[tuple[str, float]]:
    """NAME=NUMBER, as a user states parameters."""
    from gapless.errors import BadInput

    out = []
    for pair in given:
        name, _, value = pair.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not name or number != number:
            raise BadInput(f"--{option} {pair}: expected NAME=NUMBER, such as gains.kp/*=14.5")
        out.append((name, number))
    return out


def numbers(option: str, given: str | None) -> list[float]:
    """Numbers with commas between them; none where nothing is given."""
    from gapless.errors import BadInput

    try:
        out = [float(part) for part in given.split(",")] if given is not None else []
    except ValueError:
        out = [math.nan]
    if not all(map(math.isfinite, out)):
        raise BadInput(f"--{option} takes numbers with commas between them, such as 0.5,0,0, not {given!r}")
    return out


def can_write(*files: Path | None) -> None:
    """Refuse a file whose folder does not exist, before anything is computed."""
    from gapless.errors import BadInput

    for file in files:
        if file and not file.parent.is_dir():
            raise BadInput(f"{file}: there is no folder {file.parent}")


def show(result: Result, json: bool, page: Path | None = None) -> None:
    """Print a result, as JSON or for a person; and make its page where one is wanted."""
    from rich.console import Console

    if json:
        print(text.dumps(result.json()))
    else:
        Console(highlight=False).print(result)
    if page:
        result.page(page)
        tell(f"plotted into {page}")


def tell(sentence: str) -> None:
    """Say on stderr what was done, as a person wants to know it."""
    from rich.console import Console

    Console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)
