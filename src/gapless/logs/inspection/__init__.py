"""Inspection at the door: what is wrong with a log, in plain words, before anything is fitted to it.

report = inspect(log)                    # or inspect(log, Facts(joint names, ranges)) to compare with a model
for finding in report.findings: print(finding.severity, finding.sentence)
"""

from dataclasses import dataclass

import numpy as np

from gapless.logs.inspection.channel import channel_findings
from gapless.logs.inspection.clock import clock_findings
from gapless.logs.inspection.finding import ERROR, INFO, WARNING, Facts, Finding
from gapless.logs.inspection.imu import imu_findings
from gapless.logs.inspection.joints import joint_findings
from gapless.logs.inspection.slip import slip_findings
from gapless.logs.log import Log

__all__ = ["ERROR", "INFO", "WARNING", "Facts", "Finding", "Report", "inspect"]


@dataclass(frozen=True)
class Report:
    """What was found: errors first, then warnings, then what is only worth knowing; and the real rate of every signal."""

    source: str
    findings: tuple[Finding, ...]
    rates: dict[str, float]
    """Hz by signal"""
    duration: float
    """s"""

    @property
    def errors(self) -> int:
        return sum(f.severity == ERROR for f in self.findings)


def inspect(log: Log, facts: Facts | None = None) -> Report:
    """Everything that looks wrong in a log. facts: the joints of the model it is meant for."""
    found = [Finding("note", INFO, note) for note in log.provenance.notes]
    with np.errstate(all="ignore"):
        for part in (
            clock_findings(log),
            channel_findings(log),
            joint_findings(log, facts),
            imu_findings(log),
            slip_findings(log),
        ):
            found += part
    order = (ERROR, WARNING, INFO)
    rates = {name: log.rate(name) for name in log.signals}
    return Report(log.provenance.source, tuple(sorted(found, key=lambda f: order.index(f.severity))), rates, log.duration)
