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
from gapless.check.checking import check
from gapless.check.finding import BOUNDARIES, Check
from gapless.check.frames import frame_columns, upright
from gapless.check.preflight import Preflight, Subject, default_command, preflight
from gapless.check.result import PolicyCheck, junit
from gapless.check.walk import Walk, walk


class _Callable(ModuleType):
    """`gapless.check` is this package, and what everybody wants to call: it is both."""

    def __call__(self, *args: Any, **kwargs: Any) -> PolicyCheck:
        return check(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
