"""What a user says of a robot besides its file: gains, numbers of the model, which joints, how often it is told something."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gapless.checks import Checked, checked, flag, mapping, number, texts
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.robots import NO_PERIOD, RobotModel, load_robot
from gapless.twin.given import as_given, known_values, stated_gains
from gapless.twin.recipe import load as load_recipe, written
from gapless.twin.twin import Twin


def _gains(value: Any, what: str) -> Mapping[str, float]:
    """Joint pattern to gain; a number is for all."""
    if not isinstance(value, Mapping):
        return {"*": number(value, what)}
    return {str(pattern): number(gain, f"{what} of {pattern}") for pattern, gain in mapping(value, what).items()}


def _values(value: Any, what: str) -> Mapping[str, float]:
    return {str(name): number(v, str(name)) for name, v in mapping(value, what).items()}


@dataclass(frozen=True)
class Stated(Checked):
    """What a user says of a robot besides its file; every command takes the same and does the same with it."""

    kp: Mapping[str, float] = checked(_gains, factory=dict)
    """Joint pattern to proportional gain [N m/rad, N/m]; the first that matches counts. A number is for all joints."""
    kd: Mapping[str, float] = checked(_gains, factory=dict)
    values: Mapping[str, float] = checked(_values, factory=dict)
    """Parameter name or pattern to what it is instead of what the model says."""
    joints: tuple[str, ...] = checked(texts, ())
    """Patterns of the joints to work on; the others are held. All if empty."""
    control_dt: float | None = checked(number, None, low=1e-5, high=10.0)
    """Time between two commands [s]; as the model says unless given."""
    floating_base: bool = checked(flag, False)
    """Whether the base moves freely although the file has no free joint."""
    packages: tuple[str, ...] = checked(texts, ())
    """Folders in which `package://` names of a URDF are looked for first."""

    @property
    def changes(self) -> bool:
        """Whether it says anything of the robot's numbers."""
        return bool(self.kp or self.kd or self.values)

    def robot(self, source: str | os.PathLike[str] | RobotModel) -> RobotModel:
        """The robot that is meant."""
        if isinstance(source, RobotModel):
            return source
        robot = load_robot(source, self.floating_base, self.packages, self.joints)
        if self.control_dt is None:
            return robot
        steps = max(1, round(self.control_dt / robot.model.opt.timestep))
        period = steps * robot.model.opt.timestep
        if abs(period - self.control_dt) > 1e-3 * self.control_dt:
            raise BadInput(
                f"a control period of {self.control_dt:g} s is no whole number of physics steps of "
                f"{robot.model.opt.timestep:g} s; the nearest is {period:g} s"
            )
        said = tuple(sentence for sentence in robot.warnings if sentence != NO_PERIOD)
        return dataclasses.replace(robot, control_dt=period, warnings=said)

    def twin(
        self,
        source: str | os.PathLike[str] | RobotModel,
        log: Log | None = None,
        belief: str | os.PathLike[str] | None = None,
        in_air: bool = False,
    ) -> Twin:
        """The twin before anything is fitted, with all that is stated; made as a belief's file says where one is given.

        Args:
            source: name or path, or what `load_robot` gave.
            log: whose gains count where none are stated.
            belief: as `gapless fit` writes it.
            in_air: hold the floating base fixed.
        """
        robot = self.robot(source)
        if belief is not None and written(belief):
            twin = load_recipe(robot, belief, stated_gains(self.kp, self.kd), in_air)
        elif log is None:
            twin = Twin.load(robot, add=stated_gains(self.kp, self.kd), in_air=in_air)
        else:
            twin = as_given(robot, log, self.kp, self.kd, in_air)
        return self.restated(twin)

    def restated(self, twin: Twin) -> Twin:
        """A twin with the stated values in place of its model's."""
        return twin.restated(known_values(twin, list(self.values.items()), self.kp, self.kd)) if self.values else twin
