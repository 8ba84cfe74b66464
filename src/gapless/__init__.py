"""Gapless measures the gap between a simulated robot and the real one, names its causes, closes it and proves the result.

    import gapless

    log = gapless.read("motion.mcap")
    twin = gapless.as_given("my_robot.xml", log)
    print(gapless.diagnose(twin, [log]))  # how far the model is from the robot, why, and what to do next
    gapless.fit(twin, [log]).save("fitted")  # a twin that predicts, and what the log could not tell

What is here loads when it is first used.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

# Spinning threads of numpy and torch fight the physics thread pool (measured: 9.8 s an update instead of 0.25 s). These
# count only if they are set before either is loaded, and never override what the user set.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from gapless.check import PolicyCheck as PolicyCheck
    from gapless.errors import BadInput as BadInput
    from gapless.explain import Diagnosis as Diagnosis, diagnose as diagnose
    from gapless.identify import Fit as Fit, excite as excite, fit as fit
    from gapless.learn import enter as enter, plan_run as plan_run, train as train
    from gapless.logs import Log as Log, inspect as inspect, read as read, write as write
    from gapless.measure import replay_logs as replay_logs
    from gapless.policy import load_policy as load_policy, read_policy as read_policy
    from gapless.results import load as load
    from gapless.robots import load_robot as load_robot
    from gapless.twin import Twin as Twin, as_given as as_given, load_belief as load_belief
    from gapless.worlds import Worlds as Worlds

__version__ = "0.1.0"
_HOMES = {
    "check": ("PolicyCheck",),
    "errors": ("BadInput",),
    "explain": ("Diagnosis", "diagnose"),
    "identify": ("Fit", "excite", "fit"),
    "learn": ("enter", "plan_run", "train"),
    "logs": ("Log", "inspect", "read", "write"),
    "measure": ("replay_logs",),
    "policy": ("load_policy", "read_policy"),
    "results": ("load",),
    "robots": ("load_robot",),
    "twin": ("Twin", "as_given", "load_belief"),
    "worlds": ("Worlds",),
}
__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> object:
    if name == "check":  # the package itself, which can be called
        return import_module("gapless.check")
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
