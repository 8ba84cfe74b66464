"""Commands out of trajectories: what a trajectory controller tells its drives, between the points that it was sent."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.arrays import Array

PERIOD = 0.005
"""s between the commands that are made of points far apart; controllers run at 100 to 1000 Hz."""


@dataclass(frozen=True)
class Order:
    """One trajectory that a controller was sent."""

    start: float
    """[s]"""
    after: Array
    """Of each point since the start [s]. Shape: (points,)."""
    points: Array
    """Shape: (points, joints)."""
    speeds: Array | None = None
    """At each point, where they were sent. Shape: (points, joints)."""


def commanded(orders: Sequence[Order]) -> tuple[Array, Array, str]:
    """Times, positions and what was done, in words. Shapes: (n,), (n, joints).

    A new trajectory takes the place of what is left of the one before, from where that was. Between points, positions run
    straight, or as cubics where speeds were sent, as in ros2_control's joint_trajectory_controller.
    """
    orders = sorted(orders, key=lambda order: order.start)
    times, values = list[Array](), list[Array]()
    here: Array | None = None
    for order, following in zip(orders, [*orders[1:], None], strict=True):
        until = np.inf if following is None else following.start
        knots, points, speeds = order.start + order.after, order.points, order.speeds
        if here is not None and knots[0] > order.start:
            knots, points = np.append(order.start, knots), np.vstack([here, points])
            speeds = None if speeds is None else np.vstack([np.zeros_like(here), speeds])
        rising = np.append(True, np.diff(knots) > 0)
        knots, points, speeds = knots[rising], points[rising], None if speeds is None else speeds[rising]
        last = min(float(knots[-1]), until)
        grid = np.arange(knots[0], last, PERIOD) if last - knots[0] > PERIOD else knots[:1]
        grid = np.append(grid, knots[-1]) if knots[-1] < until and knots[-1] > grid[-1] else grid
        path = _between(knots, points, speeds, grid)
        times.append(grid)
        values.append(path)
        here = _between(knots, points, speeds, np.array([min(until, knots[-1])]))[0]
    time = np.concatenate(times)
    kept = np.append(True, np.diff(np.maximum.accumulate(time)) > 0)
    single = all(len(order.points) == 1 and order.after[0] <= PERIOD for order in orders)
    how = "each point is a command" if single else f"the way between points is sampled every {1e3 * PERIOD:g} ms"
    return time[kept], np.vstack(values)[kept], how


def _between(knots: Array, points: Array, speeds: Array | None, times: Array) -> Array:
    """Positions at times between knots, held beyond them. Shape: (times, joints)."""
    times = np.clip(times, knots[0], knots[-1])
    if speeds is None or len(knots) < 2:
        return np.column_stack([np.interp(times, knots, column) for column in points.T])
    from scipy.interpolate import CubicHermiteSpline

    return np.asarray(CubicHermiteSpline(knots, points, speeds)(times))
