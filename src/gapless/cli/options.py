"""Options that several commands share, each worded once; and what commands do alike with results."""

from __future__ import annotations

import contextlib
import json as text
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from gapless.report import Result
    from gapless.robots import RobotModel
    from gapless.twin import Stated

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
Overwrite = Annotated[
    bool,
    tyro.conf.FlagCreatePairsOff,
    tyro.conf.arg(help="Replace the results of an earlier run in the folder; else that is refused.", help_behavior_hint=""),
]
Seed = Annotated[int, tyro.conf.arg(help="The same seed gives the same result.")]
Threads = Annotated[int, tyro.conf.arg(help="Threads of physics; 0 for one per core.")]


Gain = Annotated[tuple[str, ...], tyro.conf.arg(metavar="KP|JOINT=KP...", help_behavior_hint="")]


@dataclass(frozen=True)
class About:
    """What is said of the robot besides its file; the same in every command."""

    kp: Gain = ()
    """Proportional gain of the drives' position loops [N m/rad, of slides N/m]: one for all, or "*_hip=40" "*_knee=60"."""
    kd: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KD|JOINT=KD...", help_behavior_hint="")] = ()
    """Derivative gain [N m s/rad], likewise."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE...", help_behavior_hint="")] = ()
    """Other numbers of the model, such as "friction.coulomb/*=0.1" or latency.action=0.01; patterns match."""
    joints: Annotated[tuple[str, ...], tyro.conf.arg(metavar="PATTERN...", help_behavior_hint="")] = ()
    """Work on these joints only; the others are held."""
    control_dt: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Time between two commands; the model's own unless given."""
    floating_base: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")] = False
    """Let the base move freely although the file has no free joint, as a URDF has none."""
    package: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR...", help_behavior_hint="")] = ()
    """Where package:// names of a URDF are looked for first; else ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and above the file."""

    def stated(self) -> Stated:
        """The same, checked, as the library takes it."""
        from gapless.errors import BadInput
        from gapless.twin import Stated

        for folder in self.package:
            if not folder.is_dir():
                raise BadInput(f"--package {folder}: there is no such folder")
        kp, kd = _gains("kp", self.kp), _gains("kd", self.kd)
        folders = tuple(str(folder) for folder in self.package)
        values = dict(pairs("set", self.set))
        return Stated(kp, kd, values, self.joints, self.control_dt, self.floating_base, folders)


ABOUT = About()


def _gains(option: str, given: tuple[str, ...]) -> dict[str, float]:
    """Joint pattern to gain, as a user states them: one number for all, or JOINT=NUMBER."""
    from gapless.errors import BadInput

    out = {}
    for each in given:
        joint, _, value = each.rpartition("=")
        try:
            out[joint or "*"] = float(value)
        except ValueError:
            raise BadInput(
                f'--{option} {each}: expected a number for all joints or JOINT=NUMBER, such as "*_knee=60"; '
                "options that take several words come after the model and the logs"
            ) from None
    return out


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


PAGE = "a page", ".html"
PICTURE = "a picture", ".png"
RECORDING = "a log", ".mcap", ".npz", ".csv"
"""What a command writes, and how the names of such files end, so that no log or model is written over."""


def can_write(file: Path | None, what: str, *suffixes: str) -> None:
    """Refuse a file of another kind, or whose folder does not exist, before anything is computed."""
    from gapless.errors import BadInput

    if file and file.suffix.lower() not in suffixes:
        raise BadInput(f"{file}: {what} is written as {' or '.join(filter(None, [', '.join(suffixes[:-1]), suffixes[-1]]))}")
    if file and not file.parent.is_dir():
        raise BadInput(f"{file}: there is no folder {file.parent}")


def wanted(out: Path | None, what: str, example: str) -> Path:
    """Where the product of a command goes, which must be said: nothing lands in the working folder unasked."""
    from gapless.errors import BadInput

    if out is None:
        raise BadInput(f"say where {what} goes, such as --out {example}")
    return out


def result_folder(out: Path, replace: bool, *results: str) -> Path:
    """The folder, unless it is none, or has results which may not be replaced."""
    from gapless.errors import BadInput

    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: not a folder, so no results can be saved there")
    if not replace and (there := [name for name in results if (out / name).exists()]):
        raise BadInput(f"{out}: holds {there[0]} of an earlier run; name another folder, or replace it with --overwrite")
    return out


def show(result: Result, json: bool, page: Path | None = None) -> None:
    """Print a result, as JSON or for a person; and make its page where one is wanted."""
    from rich.console import Console

    if json:
        print(text.dumps(result.json()))
    else:
        Console(highlight=False).print(result)
    if page:
        result.page(page)
        tell(f"the page is {page}")


def assumed(robot: RobotModel) -> None:
    """Say what had to be assumed of a robot besides its file, before anything is computed with it."""
    for sentence in robot.warnings:
        tell(f"assumed: {sentence}")


@contextlib.contextmanager
def stopping() -> Iterator[list[Callable[[], object]]]:
    """Ctrl-C and a polite kill call what is put into the list, instead of ending the program where it is."""
    import signal

    calls: list[Callable[[], object]] = []

    def stop(number: int, frame: object) -> None:
        if not calls:
            raise KeyboardInterrupt
        for call in calls:
            call()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield calls
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tell(sentence: str) -> None:
    """Say on stderr what was done, as a person wants to know it."""
    from rich.console import Console

    Console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)
