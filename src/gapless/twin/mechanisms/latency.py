"""Latency: commands reach the joint late, readings reach the controller late, some jitter and some are lost."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import mujoco

from gapless.errors import BadInput
from gapless.twin.mechanism import Bound, Fields, Values, drives
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
        for quantity, scale, tolerance, high in (
            ("action", 0.01, 0.001, self.longest),
            ("observation", 0.01, 0.001, self.longest),
            ("jitter", 0.005, 0.0005, self.longest / 2),
        ):
            parameters += [amount(f"latency.{quantity}{g}", 0.0, scale, tolerance, "s", 0.0, high) for g in groups]
        parameters.append(amount("latency.drop", 0.0, 0.05, 0.001, "", 0.0, 0.9))

        def apply(fields: Fields, values: Values) -> None:
            for quantity in ("action", "observation", "jitter"):
                for i, cols in enumerate(columns):
                    fields[f"path.{quantity}"][:, cols] = values[f"latency.{quantity}"][:, i : i + 1]
            fields["path.drop"][:] = values["latency.drop"][:, 0]

        return Bound(parameters, apply)
