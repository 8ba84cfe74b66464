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
from gapless.errors import BadInput
from gapless.logs import Log
from gapless.measure import Windows, windows
from gapless.residual.actuator import TRAIN, Actuator, InModel, history
from gapless.residual.told import as_told
from gapless.robots import torque_limit
from gapless.twin import DriveLaw, Twin

TOO_MUCH = 3.0  # times the limit of the model's drive: no torque of that drive, but a current or counts


def must_be_torque(twin: Twin, logs: Sequence[Log]) -> None:
    """Refuse "torque" that the drives of a model cannot give by far."""
    for d in twin.drives:
        mine = [log["tau"].column(d.name) for log in logs if "tau" in log and d.name in log["tau"].columns]
        seen = float(np.nanquantile(np.abs(np.concatenate(mine)), 0.99)) if mine else 0.0
        limit = torque_limit(twin.model, d.actuator)
        if seen > TOO_MUCH * limit:
            raise BadInput(
                f"tau of {d.name} reaches {seen:.3g} N m and its drive gives at most {limit:.3g}: is it a current or a count? "
                "Scale it in the mapping by the torque constant, or correct the limit in the model"
            )


def in_model(learnt: Actuator, twin: Twin, logs: Sequence[Log]) -> Actuator:
    """The same networks in a twin, and its errors of position. logs: what they were learned from."""
    grown = twin.plus(DriveLaw(tuple(learnt.nets.values())))
    unseen = []
    for log in logs:
        first, last = log["tau"].time[[0, -1]]
        unseen.append(log.slice(first + TRAIN * (last - first), np.inf))
    given = windows(twin, unseen)
    driven = given.like(grown)
    cases = [(given, twin.space.nominal), (given, _best_pd(learnt, twin)), (driven, grown.space.nominal)]
    errors = [np.sqrt((data.errors(values[None])[0] ** 2).mean(axis=0)) for data, values in cases]
    model = {
        joint: InModel(float(as_given), float(pd), float(network), _outside(learnt, joint, driven))
        for joint, as_given, pd, network in zip(twin.joints, *errors, strict=True)
    }
    return replace(learnt, model=model, twin=grown)


def _outside(learnt: Actuator, joint: str, driven: Windows) -> float:
    """The share of the twin's own run in which a joint's network sees what it was not trained in; 0 where it has none."""
    if joint not in learnt.nets:
        return 0.0
    inputs = []
    for replayer in driven.replayers:
        run = replayer(driven.twin.space.nominal)
        (log,), _ = as_told([replayer.log], learnt.command, [joint], driven.twin.stated_gains)
        place = run.joints.index(joint)
        for start, time, q, dq in zip(run.starts, run.time, run.replayed["q"][0], run.replayed["dq"][0], strict=True):
            seen = np.isfinite(time)
            told = log.at(learnt.command, start + time[seen])[:, log[learnt.command].columns.index(joint)]
            signals = {"q": q[seen, place], "dq": dq[seen, place], learnt.command: told}
            ran = Log.from_arrays([joint], time[seen], {name: values[:, None] for name, values in signals.items()})
            inputs.append(history(ran, joint, learnt.command, time[seen]))
    return learnt.nets[joint].outside(np.concatenate(inputs))


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
