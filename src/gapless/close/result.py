"""Closed: what a loop came to, as an object that prints itself, makes its page, saves itself and loads again."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapless.close import page
from gapless.plain import NOT_SAVED
from gapless.report import Film, Result


@dataclass(frozen=True)
class Spent:
    """What a stage took."""

    stage: str
    robot: float
    """Robot time [s]."""
    computing: float
    """Time of all cores [s]."""


@dataclass(frozen=True)
class Found:
    """A number of the robot, as the loop found it."""

    name: str
    nominal: float
    """As the model has it."""
    value: float
    low: float
    """90 % interval."""
    high: float
    unit: str
    truth: float
    """NaN where nobody knows it."""


@dataclass(frozen=True)
class Blamed:
    """A cause of the gap."""

    name: str
    share: float
    hidden: bool
    """Whether the stand-in really has it."""


@dataclass(frozen=True)
class Scored:
    """A policy on the robot at length, which only a stand-in allows; errors after a fall are those of standing still."""

    falls: float
    success: float
    velocity_error: float
    """[m/s]; NaN for a task without velocities."""
    yaw_error: float
    """[rad/s]"""
    runs: int


@dataclass(frozen=True, repr=False)
class Closed(Result):
    """What a loop came to."""

    NAME = "close"
    PAGE = page

    robot: str
    task: str
    budget: float
    """Robot time that was allowed [s]."""
    answer: str
    """closed (the tuned policy is better on the robot), kept (the old one is), nothing to gain, not trusted, or untried."""
    kept: str
    """Which policy is to run on the robot: `as it was`, `wide` or `tuned`."""
    policy: str
    """Its folder."""
    why: str
    """In a sentence."""
    trials: dict[str, list[float]]
    """What each trial on the robot cost the task, 0 to 1, by policy."""
    course: dict[str, Scored]
    """Of each policy, for scoring: no remedy has seen it. Empty for hardware."""
    causes: list[Blamed]
    missed: list[str]
    """What a stand-in was changed in that was not named as a cause."""
    numbers: list[Found]
    """Fitted numbers that the log determines, or that the stand-in was changed in."""
    gap: float
    left: float
    """Error of the model on what was held out, as given and fitted [rad]; of a robot that walked the distance of its states."""
    walked: bool
    unknown: list[str]
    """What the log does not tell."""
    verdicts: dict[str, str]
    """Of the stages, in their words."""
    curve: list[tuple[int, float]]
    """Iteration and reward per second on unseen robots of the belief."""
    spent: list[Spent]
    film: Film | None = field(default=None, metadata=NOT_SAVED)
    """The robot under the policy as it was and under the one that is kept."""

    @property
    def title(self) -> str:
        return f"The loop of {self.robot}, {self.task}"

    @property
    def robot_seconds(self) -> float:
        return sum(s.robot for s in self.spent)

    @property
    def computing(self) -> float:
        """Time of all cores [s]."""
        return sum(s.computing for s in self.spent)

    @property
    def exit_code(self) -> int:
        """0 where a policy that was tried is kept, 3 where what is known does not decide it."""
        return 3 if self.answer in ("untried", "not trusted") else 0
