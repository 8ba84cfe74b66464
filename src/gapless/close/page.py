"""The story of a loop on a page and in a terminal: falling and walking, causes, numbers beside the truth, time spent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from rich.console import RenderableType

from gapless.report import BLUE, Cell, Plot, Section, Table, Verdict, few, in_terminal, known, line, percent, short

if TYPE_CHECKING:
    from gapless.close.result import Closed, Found

HEADLINE = {
    "closed": "The gap is closed as far as the robot's time allowed.",
    "kept": "Tuning did not help, and the old policy is kept.",
    "nothing to gain": "There is nothing to gain.",
    "not trusted": "The fit cannot be trusted, so nothing was trained in it.",
    "untried": "The tuned policy is ready, but nobody has tried it on the robot.",
}
SHOWN = 6
"""Of what is unknown."""


def verdict(result: Closed) -> Verdict:
    """What it came to, with falls and tracking before and after."""
    text = [HEADLINE[result.answer]]
    if result.course:
        first, last = (result.course[name] for name in ("as it was", result.kept))
        kicked = ", kicked," if known(first.velocity_error) else ""
        text.append(f"On the robot{kicked} the policy fell in {percent(first.falls)} of {first.runs} runs as it was")
        text[-1] += f" and falls in {percent(last.falls)} now"
        if known(first.velocity_error):
            text[-1] += f"; its velocity error went from {first.velocity_error:.3f} to {last.velocity_error:.3f} m/s."
        else:
            text[-1] += f"; it succeeded in {percent(first.success)} and does in {percent(last.success)} now."
        if oracle := result.course.get("oracle"):
            error = f", with {oracle.velocity_error:.3f} m/s" if known(oracle.velocity_error) else ""
            text.append(f"A policy tuned on the robot as it really is falls in {percent(oracle.falls)}{error}.")
    text.append(result.why)
    if result.robot_seconds:  # none with hardware, whose logs were there
        text.append(f"{result.robot_seconds:.0f} of {result.budget:g} s of robot time were spent.")
    return Verdict(" ".join(text), good=result.answer in ("closed", "nothing to gain"))


def sections(result: Closed) -> Iterator[Section | None]:
    """The page after its verdict."""
    yield _policies(result)
    if result.verdicts:
        yield Section("What each stage says", table=Table(("stage", ""), [[k, v] for k, v in result.verdicts.items()], words=2))
    yield _causes(result)
    yield _numbers(result)
    yield _curve(result)
    yield _spent(result)
    if result.unknown:
        rest = len(result.unknown) - SHOWN
        more = [f"And {rest} more, which the page of the fit has."] if rest > 0 else []
        yield Section("What is still unknown", [*result.unknown[:SHOWN], *more])


def glance(result: Closed) -> Iterator[RenderableType]:
    """The terminal after the verdict."""
    for section in (_policies(result), _causes(result), _numbers(result), _spent(result)):
        if section and section.table:
            yield in_terminal(section)
    yield f"The policy is {result.policy}"


def _policies(result: Closed) -> Section | None:
    rows: list[list[str | Cell]] = []
    for name in dict.fromkeys([*result.trials, *result.course]):
        lost, at = result.trials.get(name), result.course.get(name)
        cells: list[str | Cell] = [f"{name} (kept)" if name == result.kept else name]
        cells.append(f"{sum(loss >= 1 for loss in lost)} of {len(lost)}" if lost else "–")
        cells.append(percent(float(np.mean(lost))) if lost else "–")
        cells += [Cell(percent(at.falls), at.falls), percent(at.success)] if at else []
        cells += [f"{at.velocity_error:.3f}"] if at and known(at.velocity_error) else []
        rows.append(cells)
    if not rows:
        return None
    head = ["policy", "trials failed", "task lost"]
    any_course = next(iter(result.course.values()), None)
    head += ["falls", "success"] if any_course else []
    head += ["velocity error [m/s]"] if any_course and known(any_course.velocity_error) else []
    text = ["Trials are on the robot and count as robot time."]
    if any_course:
        text.append(
            f"Falls and what follows are from {any_course.runs} runs of 10 s on the stand-in, kicked if it walks, to judge: "
            "no stage has seen them. After a fall, a robot errs as one that stands still."
        )
    if "oracle" in result.course:
        text.append("The oracle was tuned as long on the stand-in as it really is, which nobody can do with a robot: a limit.")
    if result.film:
        text.append("In the film it walks under the policy as it was, and beside it, as a ghost, under the one that is kept.")
    return Section("The policies on the robot", text, Table(head, rows), film=result.film)


def _causes(result: Closed) -> Section | None:
    if not result.causes:
        return None
    truth = bool(result.course) or bool(result.missed)
    rows: list[list[str | Cell]] = [
        [c.name, percent(c.share), *(["yes" if c.hidden else "no"] if truth else [])] for c in result.causes
    ]
    head = ("cause", "share of the gap", *(["truly changed"] if truth else []))
    said = "Causes that the log shows."
    if result.missed:
        said += f" Changed as well, but not among those: {few(result.missed)}."
    return Section("Why the model is off", said, Table(head, rows))


def _numbers(result: Closed) -> Section | None:
    """Numbers by quantity: medians, and how many of the intervals hold the truth."""
    if not result.numbers:
        return None
    groups: dict[str, list[Found]] = {}
    for n in sorted(result.numbers, key=lambda n: not known(n.truth)):
        groups.setdefault(n.name.partition("/")[0], []).append(n)
    rows: list[list[str | Cell]] = []
    for quantity, of in groups.items():
        sided = [n for n in of if known(n.truth)]
        holds = sum(n.low <= n.truth <= n.high for n in sided)
        middle = [float(np.median(x)) for x in zip(*((n.nominal, n.value, n.low, n.high) for n in of), strict=True)]
        truth = short(float(np.median([n.truth for n in sided]))) if sided else "–"
        name = quantity if len(of) == 1 else f"{quantity} ({len(of)})"
        interval = f"{short(middle[2])} to {short(middle[3])}"
        held: str | Cell = Cell(f"{holds} of {len(sided)}", 1 - holds / len(sided)) if sided else "–"
        rows.append([name, short(middle[0]), short(middle[1]), interval, truth, held, of[0].unit or "–"])
    text = ["Numbers of the robot as the fit has them, medians where several joints have one, with 90 % intervals."]
    text += (
        ["Beside it the truth, and how many of the intervals hold it."] if any(known(n.truth) for n in result.numbers) else []
    )
    text.append(f"On what the fit did not see, the model's error went from {_error(result)}.")
    head = ("number", "model", "found", "90 % interval", "truth", "held", "unit")
    return Section("What the robot is", text, Table(head, rows))


def _error(result: Closed) -> str:
    if result.walked:
        return f"{short(result.gap)} to {short(result.left)} (distance of how it walks, 1 is as much as a signal moves)"
    return f"{np.degrees(result.gap):.3f} to {np.degrees(result.left):.3f} deg"


def _curve(result: Closed) -> Section | None:
    if not result.curve:
        return None
    x, y = np.array(result.curve, float).T
    axes = {"xaxis": {"title": "iteration"}, "yaxis": {"title": "reward per second"}}
    plot = Plot("on unseen robots that the belief leaves possible", [line(x, y, BLUE)], axes, 260)
    return Section("How it was tuned", plots=[plot], legend=[("tuned policy", BLUE)])


def _spent(result: Closed) -> Section:
    rows = [[s.stage, f"{s.robot:.0f}" if s.robot else "–", f"{s.computing:.0f}"] for s in result.spent]
    rows.append(["all", f"{result.robot_seconds:.0f}", f"{result.computing:.0f}"])
    return Section("What time was spent on", "", Table(("stage", "robot [s]", "computing, all cores [s]"), rows))
