"""Check: no policy reaches a robot before it has passed here.

    import gapless
    result = gapless.check("unitree_rl_lab_g1", "g1.xml")
    print(result)                        # verdict, and every check with figure, threshold and fix
    result.outcome, result.finding       # "fail", "joint order"
    result.save("checked")               # verdict.json, junit.xml, report.html

`check` takes a policy of any format that `gapless.policy.read_policy` reads, or any callable with a contract.
"""

import sys
from types import ModuleType
from typing import Any

from gapless.check.audit import audit
from gapless.check.certify import (
    FEWEST as FEWEST_TRIALS,
    FIGURES as CERTIFIED_FIGURES,
    Certificate,
    certify,
    estimate,
    plan as plan_trials,
    read_trials,
    simulate as simulate_trials,
    try_standin,
    tuned_weight,
)
from gapless.check.checking import check
from gapless.check.engines import ENGINES, CrossCheck, canonical, check_engines, cross_check, installed, parity
from gapless.check.finding import BOUNDARIES, Check
from gapless.check.frames import frame_columns, upright
from gapless.check.gate import GateVerdict, gate, judge, thresholds
from gapless.check.preflight import Preflight, Subject, default_command, preflight
from gapless.check.result import PolicyCheck, junit
from gapless.check.stress import stress
from gapless.check.stress_result import Stress
from gapless.check.trials import Trials, losses, spread, trials_of, twin_for
from gapless.check.walk import Walk, walk


class _Callable(ModuleType):
    """`gapless.check` is this package, and what everybody wants to call: it is both."""

    def __call__(self, *args: Any, **kwargs: Any) -> PolicyCheck:
        return check(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
