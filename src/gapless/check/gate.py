"""Gate: may this policy run on the robot? Pass, fail or inconclusive, with the figures, their intervals and what would decide.

verdict = gate(load_policy("runs/walk"), Twin.load("quadruped"), accepted=load_policy("runs/last"))
verdict.exit_code  # 0, 1, or 3 where more runs are needed
"""

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from rich.console import RenderableType

from gapless import checks
from gapless.arrays import Array
from gapless.check.engines import CrossCheck, cross_check
from gapless.check.exact import interval, mcnemar, mean_interval, more_for_mean, runs_to_decide
from gapless.check.stress import RUNS, stress
from gapless.check.stress_result import Stress
from gapless.check.trials import drawn, losses, of_standing_still, survived, trials_of
from gapless.errors import BadInput, must_exist
from gapless.files import text
from gapless.learn import CourseResult, Task
from gapless.plain import NOT_SAVED
from gapless.policy import Policy
from gapless.report import Cell, Result, Section, Table, Verdict, in_terminal, known
from gapless.twin import Belief, Twin

DEFAULTS = Path(__file__).with_name("gate.toml")
PASS, FAIL, OPEN = "pass", "fail", "inconclusive"
EVIDENCE = ("simulation only", "real logs", "real runs")
MAX_FILE = 1 << 16
KEYS = ("survival", "tracking", "margin", "rest_speed", "heat", "engines", "worse")


@dataclass(frozen=True)
class Item:
    """One thing that was judged."""

    name: str
    answer: str
    """pass, fail or inconclusive."""
    figure: float
    low: float
    high: float
    """Interval of the figure, where it has one; else the figure."""
    threshold: float
    unit: str
    more: int | None
    """How many more runs would decide, if they go like these; None where that is not known or not needed."""
    sentence: str


@dataclass(frozen=True, repr=False)
class GateVerdict(Result):
    """The gate's answer."""

    NAME = "gate"

    robot: str
    policy: str
    """SHA-256 of the network."""
    task: str
    evidence: str
    """What it rests on: simulation only, real logs, or real runs."""
    runs: int
    seed: int
    score: float
    """What policies are ranked by, 0 to 1: one minus the mean loss on the robots that were drawn."""
    items: tuple[Item, ...]
    accepted: str
    """SHA-256 of the last accepted policy's network, where it was compared with one."""
    stressed: Stress | None = field(default=None, metadata=NOT_SAVED)
    engines: CrossCheck | None = field(default=None, metadata=NOT_SAVED)

    @property
    def answer(self) -> str:
        """fail if anything fails, else inconclusive if anything is, else pass."""
        answers = [i.answer for i in self.items]
        return FAIL if FAIL in answers else OPEN if OPEN in answers else PASS

    @property
    def exit_code(self) -> int:
        return {PASS: 0, FAIL: 1, OPEN: 3}[self.answer]

    def json(self) -> dict[str, Any]:
        return {"answer": self.answer, **super().json()}

    def verdict(self) -> Verdict:
        why = next((f": {i.sentence}" for i in self.items if i.answer == self.answer and self.answer != PASS), "")
        return Verdict(
            f"{self.answer.capitalize()}{why or f' in all {len(self.items)} items'}. Evidence: {self.evidence}.",
            self.answer == PASS,
        )

    def sections(self) -> Iterator[Section]:
        yield self._table()
        for part in (self.engines, self.stressed):
            if part is not None:
                yield from part.sections()

    def glance(self) -> Iterable[RenderableType]:
        yield in_terminal(self._table())
        for part in (self.engines, self.stressed):
            if part is not None:
                yield from part.glance()

    def _table(self) -> Section:
        tint = {PASS: 0.0, OPEN: 0.4, FAIL: 0.9}
        rows: list[list[str | Cell]] = [[i.name, Cell(i.answer, tint[i.answer]), i.sentence] for i in self.items]
        return Section(f"Judged on {self.runs} runs", table=Table(("item", "answer", "why"), rows, words=3))

    def junit(self) -> str:
        """As JUnit XML, which build servers read; what is inconclusive is an error, not a failure."""
        count = {answer: sum(i.answer == answer for i in self.items) for answer in (PASS, FAIL, OPEN)}
        suite = ElementTree.Element(
            "testsuite",
            name=f"gapless gate {self.robot}",
            tests=str(len(self.items)),
            failures=str(count[FAIL]),
            errors=str(count[OPEN]),
        )
        for i in self.items:
            case = ElementTree.SubElement(suite, "testcase", name=i.name, classname=f"gapless.{self.task}")
            if i.answer != PASS:
                ElementTree.SubElement(case, "failure" if i.answer == FAIL else "error", message=i.sentence)
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

    def markdown(self) -> str:
        """As a table for a pull request."""
        rows = [f"| {i.name} | {i.answer} | {i.sentence.replace('|', '/')} |" for i in self.items]
        return "\n".join([f"**{self.verdict().text}**", "", "| item | answer | why |", "|---|---|---|", *rows]) + "\n"

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Also gate.xml (JUnit), gate.md, and what a stress test and a cross-check left, in folders of their own."""
        super().save(folder)
        for part in (self.engines, self.stressed):
            if part is not None:
                part.save(Path(folder) / part.NAME)
        (Path(folder) / "gate.xml").write_text(self.junit())
        (Path(folder) / "gate.md").write_text(self.markdown())


def thresholds(task: str, path: str | os.PathLike[str] | None = None) -> dict[str, float]:
    """What a task asks for, by name; those that a user's file states in place of the defaults."""
    default, own = _tables(DEFAULTS), {} if path is None else _tables(Path(path))
    table = dict(default.get(task, default["other"]))
    where = f"{path}: "
    for section, entries in own.items():
        if section == "confidence":
            continue
        must_exist("task in the thresholds", [section], default)
        must_exist(f"threshold of {section}", checks.mapping(entries, f"{where}[{section}]"), KEYS)
        if section == task or (section == "other" and task not in default):
            table |= entries
    out = {"confidence": checks.number(own.get("confidence", default["confidence"]), f"{where}confidence", 0.5, 0.9999)}
    for name, value in table.items():
        out[name] = (
            float(value) if name == "engines" and isinstance(value, bool) else checks.number(value, f"{where}{name}", 0.0)
        )
    return out


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text(path, MAX_FILE))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not valid TOML ({error})") from None


def gate(
    policy: Policy,
    twin: Twin,
    belief: Belief | None = None,
    task: Task | str | None = None,
    limits: Mapping[str, float] | None = None,
    accepted: Policy | None = None,
    stressed: Stress | None = None,
    engines: CrossCheck | None = None,
    evidence: str | None = None,
    runs: int = RUNS,
    seed: int = 0,
    threads: int = 0,
    tick: Callable[[str], None] = lambda what: None,
) -> GateVerdict:
    """Judge a policy.

    Args:
        policy: with its contract.
        twin: the robot.
        belief: what robots are drawn from; the preset `wide` unless given.
        task: by name or as it is; told from the policy's commands unless given.
        limits: as `thresholds` gives them; the task's defaults unless given.
        accepted: the last accepted policy, which runs on the same robots under the same commands and kicks.
        stressed: what a stress test of the same policy, robot and belief found; its runs on drawn robots are judged.
        engines: what a cross-check found.
        evidence: one of `EVIDENCE`; "real logs" with a belief and "simulation only" without unless given.
        runs: on drawn robots.
        seed: of robots, commands and kicks.
        threads: of physics, 0 for one per core.
        tick: is told what is being done.
    """
    trials = trials_of(policy, twin, task, seed=seed, threads=threads)
    name = task if isinstance(task, str) else type(trials.task).__name__.removesuffix("Task").lower()
    asked = dict(thresholds(name) if limits is None else limits)
    confidence = asked.pop("confidence", 0.9)
    if stressed is None or stressed.drawn is None:
        tick(f"running on {runs} robots")
        result = drawn(trials, belief, runs)
    else:
        result, runs = stressed.drawn, len(stressed.drawn.fell)
    items = [*_rates(result, asked, confidence)]
    if accepted is not None and "worse" in asked:
        tick("running the last accepted policy on the same robots")
        before = drawn(trials_of(accepted, twin, task, seed=seed, threads=threads), belief, runs)
        items.append(_compared(before, result, asked["worse"]))
    items += _from_stress(stressed, asked) if stressed is not None else []
    if engines is not None and asked.get("engines"):
        fell = [e for e in engines.engines if not engines.walks(e)]
        bad = bool(fell or engines.wrong)
        items.append(_item("other engines", float(bad), 0.0, bad, "", engines.verdict().text.rstrip(".")))
    return GateVerdict(
        twin.name,
        policy.sha256,
        name,
        evidence or EVIDENCE[belief is not None],
        runs,
        seed,
        1 - float(losses(result).mean()),
        tuple(items),
        "" if accepted is None else accepted.sha256,
        stressed,
        engines,
    )


def _rates(result: CourseResult, asked: Mapping[str, float], confidence: float) -> Iterator[Item]:
    """Survival and errors, with their intervals."""
    runs, good = len(result.fell), int(survived(result).sum())
    if "survival" in asked:
        limit, share = asked["survival"], good / runs
        low, high = interval(good, runs, confidence)
        answer = PASS if low >= limit else FAIL if high < limit else OPEN
        more = runs_to_decide(share, limit, runs, confidence) if answer == OPEN else None
        words = f"{share:.1%} of {runs} runs survived ({low:.1%} to {high:.1%}), and {limit:.1%} are asked for"
        yield Item("survival", answer, share, low, high, limit, "", more, words + _more(answer, more))
    errors = (("velocity error", "m/s", result.velocity_error), ("yaw error", "rad/s", result.yaw_error))
    for (name, unit, values), idle in zip(errors, of_standing_still(result), strict=True):
        if "tracking" in asked and np.isfinite(values).any() and idle > 0:
            yield _mean(name, unit, values, idle, asked["tracking"], confidence)


def _mean(name: str, unit: str, values: Array, idle: float, share: float, confidence: float) -> Item:
    """A mean error against a share of the error of a robot that stands still."""
    low, high = mean_interval(values, confidence)
    mean, limit = float(np.nanmean(values)), share * idle
    answer = PASS if high <= limit else FAIL if low > limit else OPEN
    more = more_for_mean(values, limit, confidence) if answer == OPEN else None
    words = f"{mean:.3f} {unit} ({low:.3f} to {high:.3f}); standing still errs by {idle:.3f}, and at most {share:g} of that is"
    return Item(name, answer, mean, low, high, limit, unit, more, f"{words} asked for{_more(answer, more)}")


def _more(answer: str, more: int | None) -> str:
    if answer != OPEN:
        return ""
    return "; too close to call" if more is None else f"; about {more} more runs would decide"


def _compared(before: CourseResult, after: CourseResult, worse: float) -> Item:
    """Against the last accepted policy, run by run."""
    then, now = survived(before), survived(after)
    chance, lost, won = mcnemar(then, now), int((then & ~now).sum()), int((~then & now).sum())
    words = f"{lost} runs are lost and {won} won against the last accepted policy (McNemar, p = {chance:.2g})"
    return _item("against the accepted one", chance, worse, lost > won and chance < worse, "", words)


def _from_stress(stress: Stress, asked: Mapping[str, float]) -> Iterator[Item]:
    curves = [c for c in stress.curves if known(c.margin)]
    if "margin" in asked and curves:
        thin = min(curves, key=lambda c: c.margin)
        yield _item(
            "margin", thin.margin, asked["margin"], thin.margin < asked["margin"], "", f"{thin.name}: {thin.sentence()}"
        )
    if "rest_speed" in asked:
        speed, limit = stress.rest.speed, asked["rest_speed"]
        words = f"joints move at {speed:.2f} rad/s at rest, and at most {limit:g} is asked for"
        yield _item("rest", speed, limit, speed > limit, "rad/s", words)
    if "heat" in asked:
        minutes, limit = stress.heat.minutes, asked["heat"]
        hot = math.isfinite(minutes) and minutes < limit
        words = f"{stress.heat.joint} overheats {f'after {minutes:.1f} min' if math.isfinite(minutes) else 'never'}"
        yield _item("heat", minutes, limit, hot, "min", words)


def _item(name: str, figure: float, threshold: float, bad: bool, unit: str, sentence: str) -> Item:
    return Item(name, FAIL if bad else PASS, figure, figure, figure, threshold, unit, None, sentence)


def judge(
    policy: Policy,
    twin: Twin,
    belief: Belief | None = None,
    engines: Sequence[str] = (),
    with_stress: bool = False,
    limits: Mapping[str, float] | None = None,
    accepted: Policy | None = None,
    task: Task | str | None = None,
    seed: int = 0,
    threads: int = 0,
    tick: Callable[[str], None] = lambda what: None,
) -> GateVerdict:
    """All of it in one call: other engines and stress where they are asked for, then the gate; arguments as for these."""
    values = None if belief is None else twin.expand(belief.mean(), belief.space)[0]
    crossed = cross_check(policy, twin, engines, values, tick=tick) if engines else None
    stressed = stress(policy, twin, belief, task, seed, threads, tick=tick) if with_stress else None
    return gate(policy, twin, belief, task, limits, accepted, stressed, crossed, seed=seed, threads=threads, tick=tick)
