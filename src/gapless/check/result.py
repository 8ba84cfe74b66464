"""PolicyCheck: may this policy run on the robot? One typed result for terminal, JSON, JUnit and page."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.console import RenderableType

from gapless.check.finding import BOUNDARIES, FAIL, PASS, SKIP, WARN, Check
from gapless.check.walk import Walk
from gapless.files import atomic
from gapless.report import Result, Section, Table, Verdict, in_terminal, notes, short

NEEDED = ("contract", "robot", "walk", "log")
"""Checks without which there is no pass."""
JUNIT = "junit.xml"


@dataclass(frozen=True, repr=False)
class PolicyCheck(Result):
    """All that was judged of a policy, boundary by boundary."""

    NAME = "verdict"

    policy: str
    framework: str
    robot: str
    checks: list[Check]
    sources: dict[str, str]
    """Where each field of the contract comes from."""
    notes: list[str]
    """What is odd about the policy's files."""
    walk: Walk | None
    evidence: str
    """What the verdict rests on: files, simulation, real logs."""
    sha256: str = ""
    """Of the network that was judged, where it is a file: a robot runs that one and no other."""

    @property
    def outcome(self) -> str:
        """ "pass", "fail" or "inconclusive"."""
        if any(c.status == FAIL for c in self.checks):
            return "fail"
        return "inconclusive" if any(c.status == SKIP and c.name in NEEDED for c in self.checks) else "pass"

    @property
    def finding(self) -> str:
        """The name of the first defect; empty where there is none."""
        return next((c.name for c in self.checks if c.status == FAIL), "")

    @property
    def exit_code(self) -> int:
        return {"pass": 0, "fail": 1, "inconclusive": 3}[self.outcome]

    @property
    def title(self) -> str:
        return f"Check of {self.policy}"

    def verdict(self) -> Verdict:
        robot = f" on {self.robot}" if self.robot else ""
        first = next((c for c in self.checks if c.status == FAIL), None)
        if first is not None:
            fix = f" {first.fix}" if first.fix else ""
            return Verdict(f"FAIL{robot}, {first.boundary}: {first.name}. {first.sentence}{fix}", False)
        open_ = next((c for c in self.checks if c.status == SKIP and c.name in NEEDED), None)
        if open_ is not None:
            fix = f" {open_.fix}" if open_.fix else ""
            return Verdict(f"INCONCLUSIVE{robot}: {open_.sentence}{fix}", False)
        warned = [c.name for c in self.checks if c.status == WARN]
        but = f" Look at: {', '.join(dict.fromkeys(warned))}." if warned else ""
        return Verdict(f"PASS{robot}: {sum(c.status == PASS for c in self.checks)} checks, on {self.evidence}.{but}", True)

    def json(self) -> dict[str, Any]:
        return {"outcome": self.outcome, "finding": self.finding, "boundary": self._boundary(), **super().json()}

    def _boundary(self) -> str:
        return next((c.boundary for c in self.checks if c.status == FAIL), "")

    def _table(self) -> Section:
        rows = [
            [
                c.boundary,
                c.name,
                c.status,
                f"{c.sentence}{' ' + c.fix if c.fix else ''}",
                _size(c.figure, c.unit),
                _size(c.threshold, c.unit),
            ]
            for c in self.checks
        ]
        return Section("Checks", table=Table(["boundary", "check", "", "what was found", "figure", "threshold"], rows, words=4))

    def sections(self) -> Iterable[Section | None]:
        yield self._table()
        if self.notes:
            yield Section("About the files", list(self.notes))
        rows = [[name, where] for name, where in self.sources.items()]
        yield Section("Where the contract comes from", table=Table(["field", "source"], rows, words=2)) if rows else None
        if self.walk is not None:
            shares = [
                [j, f"{100 * s:.0f} %", f"{100 * self.walk.first_torque[j]:.0f} %"] for j, s in self.walk.saturation.items()
            ]
            head = ["joint", "at its torque limit", "torque in the first period"]
            w = self.walk
            text = f"Command {w.command}: {w.distance:.2f} m of {w.asked:.2f} m in {w.seconds:.1f} s."
            yield Section("The walk", text, table=Table(head, shares))

    def glance(self) -> Iterable[RenderableType]:
        for boundary in BOUNDARIES:
            rows = [[c.name, c.status, c.sentence] for c in self.checks if c.boundary == boundary]
            if rows:
                yield in_terminal(Section(boundary.capitalize(), table=Table(["check", "", "what was found"], rows, words=3)))
        yield from notes("note", self.notes)

    def save(self, folder: str | os.PathLike[str]) -> None:
        super().save(folder)
        with atomic(Path(folder) / JUNIT) as part:
            part.write_bytes(junit(self))


def _size(value: float, unit: str) -> str:
    return f"{short(value)} {unit}".strip() if value == value else ""


def junit(result: PolicyCheck) -> bytes:
    """The checks as JUnit XML: a suite a boundary; what could not be judged is skipped."""
    root = ElementTree.Element("testsuites", name=_clean(result.title))
    for boundary in BOUNDARIES:
        cases = [c for c in result.checks if c.boundary == boundary]
        failed, skipped = (str(sum(c.status == s for c in cases)) for s in (FAIL, SKIP))
        suite = ElementTree.SubElement(
            root, "testsuite", name=boundary, tests=str(len(cases)), failures=failed, skipped=skipped
        )
        for check in cases:
            case = ElementTree.SubElement(suite, "testcase", classname=boundary, name=_clean(check.name))
            if check.status == FAIL:
                ElementTree.SubElement(case, "failure", message=_clean(check.sentence)).text = _clean(check.fix)
            elif check.status == SKIP:
                ElementTree.SubElement(case, "skipped", message=_clean(check.sentence))
            else:
                ElementTree.SubElement(case, "system-out").text = _clean(check.sentence)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root)


def _clean(text: str) -> str:
    """Text without what XML cannot hold; names may come from hostile files."""
    return "".join(c if c in "\t\n" or ord(c) >= 32 else "?" for c in text)
