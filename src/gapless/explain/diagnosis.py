"""Diagnosis: how far a model is from its robot, why, and what to do next; the gap and its explanation as one result.

diagnosis = diagnose(as_given("arm.xml", log), [log])
print(diagnosis)
diagnosis.save("gap")
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from gapless import checks
from gapless.explain import page
from gapless.explain.causes import Explanation, explain
from gapless.gap import Gap, measure
from gapless.logs import Log
from gapless.measure import Admitted, admit, one_robot, phase_map, without_velocity
from gapless.plain import plain, read_json
from gapless.report import Result
from gapless.twin import Twin


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """How far the model as given is from the robot, and why."""

    NAME = "gap"
    PAGE = page

    gap: Gap
    """Of the model as given, and with the causes put in."""
    explanation: Explanation
    phases: dict[str, dict[str, float | None]]
    """How much larger the mean squared error is in a phase than elsewhere, with the causes put in, by joint and phase."""

    @property
    def robot(self) -> str:
        return self.gap.robot

    def json(self) -> dict[str, Any]:
        return plain({"verdict": self.verdict().text, "explanation": self.explanation, "phases": self.phases}) | {
            "gap": self.gap.json()
        }


def diagnose(
    twin: Twin,
    logs: Sequence[Log],
    tick: Callable[[str, float | None], object] = lambda text, left: None,
    task: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Measure how far a twin is from logs, share it out among causes, and say what to do next.

    Args:
        twin: the model as given (`as_given`), with its mechanisms.
        logs: of one robot; 20 s of rich motion are enough. Bad ones are left out, and named, if others are good.
        tick: told what is being done, and how many seconds are left where that is known.
        task: what each mechanism costs the task, where that was measured (`read_losses`).
    """
    one_robot(logs)
    return diagnose_admitted(twin, admit(twin, logs), tick, task)


@threadpool_limits.wrap(limits=1, user_api="blas")  # sums of several threads end in other bits, on which near ties can hang
def diagnose_admitted(
    twin: Twin, admitted: Admitted, tick: Callable[[str, float | None], object], task: Mapping[str, float] | None = None
) -> Diagnosis:
    """The same for logs that `admit` has let in."""
    logs = admitted.logs
    held = without_velocity(twin, "commanded in velocity, so that positions drift: no causes were looked for")
    why = explain(held, logs, tick, task)
    left_out = [*(f"left out {reason}" for reason in admitted.refused.values()), *admitted.notes]
    why = replace(why, next=[*left_out, *why.next, *held.warnings[len(twin.warnings) :]])
    tick("measuring how far the model is off with the causes put in", None)
    values = {name: p.value for c in why.mechanisms for name, p in c.parameters.items()}
    usable = values and set(values) <= set(twin.space.names)  # else the twin has no place for one of the causes
    gap = measure(twin, logs, twin.space.values(values) if usable else None)
    return Diagnosis(gap, why, phase_map(gap.traces))


def read_losses(path: str | os.PathLike[str]) -> dict[str, float]:
    """What each mechanism costs a task: a JSON table of mechanism to loss."""
    table = read_json(Path(path), 2**20)
    what = f"{path}: a table of losses has one number for each mechanism"
    return {name: checks.number(loss, f"{what}; {name}") for name, loss in table.items()}
