"""The built-in tasks by name, each made for a robot."""

from collections.abc import Callable

from gapless.errors import BadInput, must_exist
from gapless.learn.task import Task
from gapless.learn.tasks.drive import drive_of
from gapless.learn.tasks.reach import reach_of
from gapless.learn.tasks.stand import stand_of
from gapless.learn.tasks.swing import swing_of
from gapless.learn.tasks.velocity import velocity_of
from gapless.twin import Twin

TASKS: dict[str, Callable[[Twin, int], Task]] = {
    "velocity": velocity_of,
    "stand": stand_of,
    "reach": reach_of,
    "drive": drive_of,
    "swing": swing_of,
}
"""Name to a function of the robot and the number of frames that the policy sees."""


def task_of(name: str, twin: Twin, history: int = 1, residual: bool = False) -> Task:
    """A task for a robot; bad input where the robot cannot do it. With `residual` the policy adds to an open-loop gait."""
    must_exist("task", [name], TASKS)
    if residual:
        if name != "velocity":
            raise BadInput(f"{name} has no gait that a residual could be added to; only velocity has")
        return velocity_of(twin, history, residual)
    return TASKS[name](twin, history)
