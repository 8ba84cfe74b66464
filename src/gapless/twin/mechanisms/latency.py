"""Latency: commands reach the joint late, readings reach the controller late, some jitter and some are lost."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import drives, fits
from gapless.twin.mechanism import DRIVE, IN_REPLAY, NEVER, STANDING_DRIVE, Bound, Fields, Mechanism, Quantity, Values

# Ranges: the whole loop of Tan et al. 2018 takes 0-40 ms; jitter also stands for the varying length of a period.
ACTION = Quantity(
    "latency.action",
    "s",
    remedy="put a delay of {value} into the model; `gapless fit` finds it to a millisecond",
    stands_for=("latency.observation",),
    rungs=(DRIVE,),
    standing=STANDING_DRIVE,
    shows="sharp steps and a faster log show it",
    changes="the bus was loaded differently, or another computer or controller sent the commands",
    ranges={"wide": ("", 0.0, 0.02)},
    exported="delay",
)
OBSERVATION = Quantity("latency.observation", "s", cause=None, ranges={"wide": ("", 0.0, 0.02)})
JITTER = Quantity("latency.jitter", "s", cause=None, shown_by=IN_REPLAY, ranges={"wide": ("", 0.0, 0.005)})
DROP = Quantity("latency.drop", cause=None, shown_by=NEVER, ranges={"wide": ("", 0.0, 0.02)})


@dataclass(frozen=True)
class Latency(Mechanism):
    """Delay, jitter and loss of commands and readings, for the whole robot or per bus.

    A command sent at t acts from t + action + jitter * U(0, 1); one that is dropped never acts. A reading taken at t shows
    the state at t - observation. Delays act in the command and sensor path, to a fraction of a physics step.
    """

    quantities = (ACTION, OBSERVATION, JITTER, DROP)
    longest: float = 0.1
    """The longest delay considered [s]; it sizes the buffers."""
    buses: dict[str, str] = field(default_factory=dict)
    """Bus name to joint pattern, where buses differ: {"left": "L_*", "right": "R_*"}."""

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if not 0 < self.longest <= 1.0:
            raise BadInput(f"the longest latency must be between 0 and 1 s, not {self.longest:g}")

    def bind(self, model: mujoco.MjModel) -> Bound:
        joints = [d.name for d in drives(model)]
        groups = {"": joints}
        if self.buses:
            groups = {bus: [j for j in joints if fits(j, pat)] for bus, pat in self.buses.items()}
            lost = [j for j in joints if sum(j in g for g in groups.values()) != 1]
            if lost:
                raise BadInput(f"every joint must be on exactly one bus; {', '.join(lost)} is not")
        columns = [[joints.index(j) for j in g] for g in groups.values()]
        native = np.array([float(model.actuator_delay[d.actuator]) for d in drives(model)])
        usual = [float(native[c].mean()) if len(c) else 0.0 for c in columns]
        parameters = [ACTION.amount(g, u, 0.01, 0.001, 0.0, max(self.longest, u)) for g, u in zip(groups, usual, strict=True)]
        parameters += [OBSERVATION.amount(g, 0.0, 0.01, 0.001, 0.0, self.longest) for g in groups]
        parameters += [JITTER.amount(g, 0.0, 0.005, 0.0005, 0.0, self.longest / 2) for g in groups]
        parameters.append(DROP.amount("", 0.0, 0.05, 0.001, 0.0, 0.9))

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
