"""Whether logs can be compared with a twin at all; if not, one sentence that says what would be needed."""

from collections.abc import Sequence

import numpy as np

from gapless.errors import BadInput
from gapless.logs import SHORTEST, STILL, Log, travel
from gapless.measure.signals import difference
from gapless.rotations import tipped, up_of
from gapless.twin import Twin

TURNS = 0.1  # rad: a base whose orientation changes by more is not held
TIPPING = 1.0  # s that a fall takes
COMMANDS = ("q_cmd", "dq_cmd", "tau_cmd")


def must_compare(twin: Twin, logs: Sequence[Log]) -> None:
    """Raise unless all logs are of one robot, and of this twin's."""
    one_robot(logs)
    for log in logs:
        commands_for(twin, log)
        if (fell := fall(twin, log)) is not None:
            end = fell - log.start
            use = f"measure what came before it, {log.name}@0:{end - TIPPING:.1f}" if end > 2 * TIPPING else "record it again"
            raise BadInput(f"{log.name}: the robot fell over {end:.1f} s after the start, and no replay follows a fall: {use}")


def commands_for(twin: Twin, log: Log) -> dict[str, list[str]]:
    """The signals that command a twin's drives, and the joints of each; BadInput where the log lacks what a replay needs."""
    if not twin.joints:
        raise BadInput(f"{twin.name} has no drives, so no log can be compared with it: state gains (--kp, --kd) for its joints")
    if twin.floating and "quat" not in log:
        raise BadInput(
            f"{log.name}: {twin.name} has a free base, but the log has no orientation (signal quat): log the IMU, or say that "
            "the base was held (--in-air)"
        )
    turned = 0.0 if twin.floating or "quat" not in log else _turned(log)
    if turned > TURNS:
        raise BadInput(
            f"{log.name}: the base turned by {np.degrees(turned):.0f} deg, but that of {twin.name} is held: "
            "leave out --in-air, or use a model with a free base"
        )
    commands: dict[str, list[str]] = {}
    for d in (d for d in twin.drives if not d.passive):
        commands.setdefault(f"{d.signal}_cmd", []).append(d.name)
    if "tau_cmd" in commands and "tau_cmd" not in log and "q_cmd" in log:
        raise BadInput(
            f"{log.name}: commands are positions (q_cmd), but {twin.name} takes torque: state its drives' gains (--kp, --kd)"
        )
    for signal, joints in {"q": list(twin.joints), **commands}.items():
        if signal not in log:
            raise BadInput(
                f"{log.name}: no {signal}, which {twin.name} needs, only {', '.join(log.signals)}; name it in a mapping"
            )
        columns = log[signal].columns
        absent = [j for j in joints if j not in columns]
        if absent:
            raise BadInput(
                f"{log.name}: no {signal} of {', '.join(absent)}, which {twin.name} drives; the log has {', '.join(columns)}: "
                "rename joints with a mapping, or take drives that were not recorded out of the model"
            )
    return commands


def fall(twin: Twin, log: Log) -> float | None:
    """When a robot on its feet had tipped over by more than 60 deg [s]; None where it did not."""
    if not twin.floating or "quat" not in log:
        return None
    known = np.isfinite(log["quat"].values).all(axis=1)
    up = up_of(log["quat"].values[known])
    over = np.flatnonzero(tipped(up, up[:1]))
    return float(log["quat"].time[known][over[0]]) if len(over) else None


def one_robot(logs: Sequence[Log]) -> None:
    """Raise where there is no log, or logs have different joints or were commanded in different ways."""
    if not logs:
        raise BadInput("name at least one log")
    for log in logs:
        if "q" not in log:
            raise BadInput(f"{log.name}: no joint positions (signal q), so there is nothing to compare a model with")
    first = logs[0]
    for log in logs[1:]:
        apart = set(first["q"].columns) ^ set(log["q"].columns)
        if apart:
            joint = min(apart)
            has, lacks = (first, log) if joint in first["q"].columns else (log, first)
            raise BadInput(
                f"{has.name} and {lacks.name} are of different robots, only the first has joint {joint!r}: "
                "measure each robot alone"
            )
        ours, theirs = (" and ".join(c for c in COMMANDS if c in one) or "no commands" for one in (first, log))
        if ours != theirs:
            raise BadInput(
                f"{first.name} has {ours} and {log.name} has {theirs}, so they were not commanded alike: measure them apart"
            )


def long_enough(logs: Sequence[Log]) -> None:
    """Raise where there is too little to explain or fit one half and to test on the other."""
    have = sum(float(np.ptp(log["q"].time)) if len(log["q"].time) else 0.0 for log in logs)
    if have < SHORTEST - 0.1:
        raise BadInput(f"only {have:.1f} s of usable data: record at least {SHORTEST:g} s of motion, of which half is held out")


def moving(logs: Sequence[Log]) -> None:
    """Raise where no joint moves: all models of a robot that stands still are alike."""
    if not any(travel(column) > STILL for log in logs for column in log["q"].values.T):
        raise BadInput(
            f"no joint moves in {', '.join(log.name for log in logs[:3])}: record motion (`gapless excite` plans one)"
        )


def _turned(log: Log) -> float:
    """How far the base turned from its mean orientation [rad]."""
    quat = log["quat"].values[np.isfinite(log["quat"].values).all(axis=1)]
    if not len(quat):
        return 0.0
    mean = quat.mean(axis=0)
    return float(np.abs(difference("quat", quat, mean / np.linalg.norm(mean))).max())


def without_velocity(twin: Twin, why: str) -> Twin:
    """The twin of its drives that are not commanded in velocity, if it has such: positions of the others drift in any case.

    why: those are left out, as the warning about them says it.
    """
    others = [d.name for d in twin.drives if d.signal != "dq"]
    return twin.only(others, why) if others else twin
