"""Latency: commands reach the joint late, readings reach the controller late, some jitter and some are lost."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import drives
from gapless.twin.mechanism import Bound, Fields, Values
from gapless.twin.space import Parameter, amount


@dataclass(frozen=True)
class Latency:
    """Delay, jitter and loss of commands and readings, for the whole robot or per bus.

    A command sent at t acts from t + action + jitter * U(0, 1); one that is dropped never acts. A reading taken at t shows
    the state at t - observation. Delays act in the command and sensor path, to a fraction of a physics step.
    """

    longest: float = 0.1
    """The longest delay considered [s]; it sizes the buffers."""
    buses: dict[str, str] = field(default_factory=dict)
    """Bus name to joint pattern, where buses differ: {"left": "L_*", "right": "R_*"}."""

    def install(self, spec: mujoco.MjSpec) -> None:
        if not 0 < self.longest <= 1.0:
            raise BadInput(f"the longest latency must be between 0 and 1 s, not {self.longest:g}")

    def bind(self, model: mujoco.MjModel) -> Bound:
        joints = [d.name for d in drives(model)]
        groups = {"": joints}
        if self.buses:
            groups = {f"/{bus}": [j for j in joints if fnmatchcase(j, pat)] for bus, pat in self.buses.items()}
            lost = [j for j in joints if sum(j in g for g in groups.values()) != 1]
            if lost:
                raise BadInput(f"every joint must be on exactly one bus; {', '.join(lost)} is not")
        columns = [[joints.index(j) for j in g] for g in groups.values()]
        parameters: list[Parameter] = []
        native = np.array([float(model.actuator_delay[d.actuator]) for d in drives(model)])
        usual = [float(native[c].mean()) if len(c) else 0.0 for c in columns]
        parameters += [
            amount(f"latency.action{g}", u, 0.01, 0.001, "s", 0.0, max(self.longest, u))
            for g, u in zip(groups, usual, strict=True)
        ]
        for quantity, scale, tolerance, high in (
            ("observation", 0.01, 0.001, self.longest),
            ("jitter", 0.005, 0.0005, self.longest / 2),
        ):
            parameters += [amount(f"latency.{quantity}{g}", 0.0, scale, tolerance, "s", 0.0, high) for g in groups]
        parameters.append(amount("latency.drop", 0.0, 0.05, 0.001, "", 0.0, 0.9))

        def apply(fields: Fields, values: Values) -> None:
            for i, cols in enumerate(columns):
                # delays that the model gives to single actuators keep their differences
                late = native[cols] + (values["latency.action"][:, i : i + 1] - usual[i])
                fields["path.action"][:, cols] = np.maximum(late, 0.0)
            for quantity in ("observation", "jitter"):
                for i, cols in enumerate(columns):
                    fields[f"path.{quantity}"][:, cols] = values[f"latency.{quantity}"][:, i : i + 1]
            fields["path.drop"][:] = values["latency.drop"][:, 0]

        return Bound(parameters, apply)
