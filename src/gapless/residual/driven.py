"""Drives with their networks in a model of the robot: how well it then moves as logs say, beside simpler laws.

    learnt = in_model(learn_actuator(logs), as_given("robot.xml", logs[0]), logs)
    learnt.save("drives")                        # drives/twin.xml has the networks in place of its drives' laws

Judged is the part of the logs that networks were not learned from, in windows from measured states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gapless.arrays import Array
from gapless.logs import Log
from gapless.measure import windows
from gapless.residual.actuator import TRAIN, Actuator, InModel
from gapless.twin import DriveLaw, Twin


def in_model(learnt: Actuator, twin: Twin, logs: Sequence[Log]) -> Actuator:
    """The same networks in a twin, and its errors of position. logs: what they were learned from."""
    grown = twin.plus(DriveLaw(tuple(learnt.nets.values())))
    unseen = []
    for log in logs:
        first, last = log["tau"].time[[0, -1]]
        unseen.append(log.slice(first + TRAIN * (last - first), np.inf))
    given = windows(twin, unseen)

    def error(values: Array, of: Twin) -> Array:
        data = given if of is twin else given.like(of)
        return np.asarray(np.sqrt((data.errors(values[None])[0] ** 2).mean(axis=0)))

    laws = (error(twin.space.nominal, twin), error(_best_pd(learnt, twin), twin), error(grown.space.nominal, grown))
    model = {joint: InModel(*map(float, errors)) for joint, *errors in zip(twin.joints, *laws, strict=True)}
    return replace(learnt, model=model, twin=grown)


def _best_pd(learnt: Actuator, twin: Twin) -> Array:
    """A twin's parameters with each drive's best delayed PD law. Shape: (parameters,)."""
    space, values = twin.space, twin.space.nominal.copy()
    for name, law in learnt.joints.items():
        stated = {f"gains.kp/{name}": law.gain, f"gains.kd/{name}": law.damping}
        if learnt.command == "tau_cmd":
            stated = {f"motor.strength/{name}": law.gain, f"friction.viscous/{name}": law.damping}
        for parameter, value in stated.items():
            if parameter in space.names:
                values[space.names.index(parameter)] = value
    delays = [i for i, p in enumerate(space.parameters) if p.quantity == "latency.action"]
    values[delays] = np.mean([law.delay for law in learnt.joints.values()])
    return space.clip(values)
