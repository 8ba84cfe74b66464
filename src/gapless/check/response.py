"""What a policy makes of its commands on the robot as modelled: response, dead zones, drift, shaking at rest, heat."""

import math
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array
from gapless.check.trials import Trials
from gapless.learn import Environment

LEVELS = 9
"""Of each command, over its range."""
DEAD = 0.25
"""A command of which less than this share is followed is in a dead zone."""
SETTLE = 0.4
"""Share of a run after which the response counts."""
RESTLESS = 0.1
"""Joint speed at rest above which a robot shakes [rad/s], root mean square."""
CONTINUOUS = 1 / 3
"""Of a drive's largest torque that it can hold for ever, as data sheets of geared drives of legged robots have it, about."""
MINUTES = 5.0
"""Time constant of such a drive's heat [min]."""


@dataclass(frozen=True)
class Response:
    """What comes of one command, given alone."""

    command: str
    asked: tuple[float, ...]
    got: tuple[float, ...]
    """Mean in the same direction; NaN where the robot fell."""
    aside: tuple[float, ...]
    """Largest mean of the other directions, with its sign."""
    dead: float
    """Largest command of which less than a quarter is followed; 0 for none."""
    drift: float
    """Largest motion aside, in the units of the other commands."""


@dataclass(frozen=True)
class Rest:
    """How a robot that is commanded nothing behaves."""

    speed: float
    """Of its joints, root mean square [rad/s]."""
    joint: str
    """The one that moves most."""
    frequency: float
    """Of its motion [Hz]; NaN where it does not shake."""
    drift: float
    """Of the base over the ground [m/s]; NaN for a fixed base."""

    @property
    def shakes(self) -> bool:
        return self.speed > RESTLESS


@dataclass(frozen=True)
class Heat:
    """How warm the drives get, with the usual figures for such drives: continuous torque and time constant."""

    joint: str
    """The hottest."""
    load: float
    """Root mean square of its torque as a share of its continuous one."""
    minutes: float
    """Until it is as warm as its continuous torque makes it, from cold; infinite where it never is (None in JSON)."""
    continuous: float = CONTINUOUS
    time_constant: float = MINUTES


def respond(trials: Trials) -> tuple[tuple[Response, ...], Rest, Heat]:
    """Each command alone over its range, on the robot as modelled, without kicks; the last robot is commanded nothing."""
    names, ranges = list(trials.ranges), list(trials.ranges.values())
    asked = [np.linspace(low, high, LEVELS) for low, high in ranges]
    commands = np.zeros((sum(map(len, asked)) + 1, len(names)))
    rows = np.split(np.arange(len(commands) - 1), len(names)) if names else []
    for column, (mine, levels) in enumerate(zip(rows, asked, strict=True)):
        commands[mine, column] = levels
    moves: list[Array] = []
    speeds: list[Array] = []
    squares: list[Array] = []

    def watch(environment: Environment) -> None:
        scene = environment.scene
        if scene.floating:
            moves.append(np.column_stack([scene.velocity[:, :2], scene.yaw_rate]))
        speeds.append(scene.dq.copy())
        squares.append(scene.torque**2)

    values = np.tile(trials.twin.space.nominal, (len(commands), 1))
    result = trials.run(values, commands, watch=watch)
    first = round(SETTLE * len(speeds))
    mean = np.array(moves[first:]).mean(axis=0) if moves else np.full((len(commands), 3), np.nan)
    mean[result.fell] = np.nan
    directions = {"vx": 0, "v": 0, "vy": 1, "yaw_rate": 2}
    responses = tuple(
        _response(name, levels, mean[mine], directions[name])
        for name, mine, levels in zip(names, rows, asked, strict=True)
        if name in directions and moves
    )
    still = np.array([dq[-1] for dq in speeds[first:]])
    return responses, _rest(trials, still, mean[-1]), _heat(trials, np.array(squares[first:]).mean(axis=0))


def _response(name: str, asked: Array, mean: Array, direction: int) -> Response:
    got = mean[:, direction]
    others = np.delete(mean, direction, axis=1)
    aside = others[np.arange(len(others)), np.abs(np.nan_to_num(others)).argmax(axis=1)]
    deaf = (np.abs(asked) > 1e-9) & (got * np.sign(asked) < DEAD * np.abs(asked))
    dead = float(np.abs(asked[deaf]).max()) if deaf.any() else 0.0
    drift = float(np.nanmax(np.abs(aside))) if np.isfinite(aside).any() else math.nan
    return Response(name, tuple(asked.tolist()), tuple(got.tolist()), tuple(aside.tolist()), dead, drift)


def _rest(trials: Trials, dq: Array, moved: Array) -> Rest:
    """dq: of the robot that is commanded nothing. Shape: (periods, joints)."""
    rms = np.sqrt((dq**2).mean(axis=0))
    worst = int(rms.argmax())
    speed = float(rms[worst])
    power = np.abs(np.fft.rfft(dq[:, worst] - dq[:, worst].mean())) ** 2
    frequency = float(np.fft.rfftfreq(len(dq), trials.twin.control_dt)[power.argmax()]) if speed > RESTLESS else math.nan
    return Rest(speed, trials.twin.joints[worst], frequency, float(np.hypot(*moved[:2])))


def _heat(trials: Trials, squares: Array) -> Heat:
    """squares: mean squared torque of each robot and joint, of which the worst command counts."""
    limits = np.array([j.torque_limit for j in trials.twin.joint_table])
    load = np.sqrt(squares.max(axis=0)) / (CONTINUOUS * limits)
    hottest = int(load.argmax())
    worst = float(load[hottest])
    minutes = -MINUTES * math.log(1 - 1 / worst**2) if worst > 1 else math.inf
    return Heat(trials.twin.joints[hottest], worst, minutes)
