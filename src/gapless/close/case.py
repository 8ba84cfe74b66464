"""Case: a robot that a policy does not work on, what is at hand, and how much of the robot's time may be spent."""

from __future__ import annotations

import dataclasses
import functools
import os
from dataclasses import dataclass
from pathlib import Path

from gapless.checks import Checked, checked, flag, number, numbers, part_of, text, texts, whole
from gapless.errors import BadInput
from gapless.learn import NETWORKS, task_of
from gapless.logs import load_mapping
from gapless.policy import load_policy
from gapless.twin import Stated, Twin
from gapless.worlds import StandInSpec

ROBOT_TIME = 60.0
"""Seconds of robot time that a loop may spend unless told otherwise: log and trials."""
TUNING = 120
"""Iterations of tuning: two minutes of one core for the quadruped."""
WALK = (0.5, 0.0, 0.0)
"""Forward velocity [m/s], sideways, and turn rate [rad/s]."""
SHIPPED = Path(__file__).with_name("policies")
"""Policies of the built-in quadruped that come with the project; `docs/close.md` has the commands that make them."""

STANDIN = Path(__file__).with_name("standin.toml")
"""The robot with secrets that a loop is shown on unless another is named."""


def _folder(value: os.PathLike[str] | str, what: str) -> str:
    folder = text(os.fspath(value), what)
    if folder and not (Path(folder) / "policy.onnx").is_file():
        raise BadInput(f"{what}: there is no policy.onnx in {folder}: name the folder of a training (gapless train)")
    return folder


@dataclass(frozen=True)
class Case(Checked):
    """What a remedy is tried on. The robot is a stand-in, or hardware of which there are logs."""

    robot: str = checked(text)
    """Name or path of the model."""
    task: str = checked(text, "velocity")
    standin: StandInSpec | None = None
    """The robot with secrets; None for hardware."""
    logs: tuple[str, ...] = checked(texts, ())
    """Of the hardware, where there is no stand-in."""
    mapping: str = checked(text, "")
    """What the logs' files cannot say: a name or a TOML file."""
    policy: str = checked(_folder, "")
    """Folder of the policy that is on the robot; one that is trained on the nominal robot unless given."""
    base: str = checked(_folder, "")
    """Folder of the training whose policy is tuned; one that is trained in `wide` unless given."""
    stated: Stated = checked(part_of, factory=Stated, kind=Stated)
    hoist: bool = checked(flag, True)
    """Whether the robot can be lifted, so that its legs move freely while it is recorded."""
    command: tuple[float, ...] = checked(numbers, WALK)
    """What a walking robot is asked for while it is recorded, in the order of its policy's commands."""
    budget: float = checked(number, ROBOT_TIME, low=0.0, high=36000.0)
    """Robot time [s]."""
    iterations: int = checked(whole, TUNING, low=1, high=100_000)
    """Of tuning."""
    scratch: int = checked(whole, 0, low=0, high=100_000)
    """Iterations of a policy that is trained from nothing; as many as suit the task unless given."""
    seed: int = checked(whole, 0, low=0, high=1 << 32)
    """Of training; a stand-in has its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.standin is None and not self.logs:
            raise BadInput(f"{self.robot}: there are neither logs of the robot nor a stand-in to record: give one of them")
        if self.standin is None and not self.hoist and not self.policy:
            raise BadInput("logs of a robot that was not lifted are of its policy walking: name that policy (--policy)")

    @functools.cached_property
    def secret(self) -> StandInSpec:
        """The stand-in, with the gains that are stated."""
        spec = self.standin
        if spec is None:
            raise BadInput("the robot is hardware, which cannot be recorded or tried from here: give its logs")
        gains = {key: dict(given) for key, given in (("kp", self.stated.kp), ("kd", self.stated.kd)) if given}
        return dataclasses.replace(spec, add={**spec.add, "gains": {**spec.add.get("gains", {}), **gains}}) if gains else spec

    def must_begin(self) -> None:
        """Refuse what cannot be used of what was given, before the robot is asked for anything."""
        twin = self.twin()
        commands = task_of(self.task, twin).commands
        if self.mapping:
            load_mapping(self.mapping)
        for folder in filter(None, (self.policy, self.base)):
            load_policy(folder).contract.columns(twin.joints)
        if self.base and not (Path(self.base) / NETWORKS).is_file():
            raise BadInput(
                f"{self.base}: has no {NETWORKS}, so it cannot be tuned: name the folder of a training (gapless train)"
            )
        if self.command == WALK:
            return
        if len(self.command) != len(commands):
            names = ", ".join(commands) or "none"
            raise BadInput(f"--command: {self.task} takes {len(commands)} numbers ({names}), not {len(self.command)}")
        for asked, (name, (low, high)) in zip(self.command, commands.items(), strict=True):
            number(asked, f"--command: {name}", low, high)

    def twin(self, in_air: bool = False) -> Twin:
        """The model before anything is fitted."""
        return self.stated.twin(self.robot, in_air=in_air)


def shipped(robot: str, task: str, stated: Stated) -> dict[str, str]:
    """Policies that come with the project, as fields of a case; none but for the quadruped as it is."""
    if (robot, task) != ("quadruped", "velocity") or stated != Stated():
        return {}
    return {"policy": str(SHIPPED / "quadruped_nominal"), "base": str(SHIPPED / "quadruped_wide")}
