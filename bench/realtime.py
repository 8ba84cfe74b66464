"""A 1 kHz inner loop against a stand-in in another process over UDP, with another core loaded: deadlines, periods, latencies.

    python -m bench.realtime [--seconds 600] [--no-load] [--json]

Gates: the 99th percentile of computing time at most 200 us, and no growth of memory. Reported: missed deadlines; p50, p99 and
p99.9 of the period, of computing (processor time of the loop's thread), of answering (what it waits included), and of the time
from a command to the first state that is known to come after it. A run that stops by itself is counted, with its reason and
with how late a witness of the highest priority (`bench.witness`) woke just before, and another begins until the time is full.
Beside it the same loop without policy and safety layer: what this machine's clock and network alone do.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.safety import GATED, POLICY, served
from bench.witness import witnesses
from gapless.deploy import Link, Pace, Recorder, Runner, Times, UdpRobot, claim, limits_of, undisturbed
from gapless.policy import load_policy
from gapless.robots import load_robot

console = Console(stderr=True)
COMPUTING_GATE = 200.0
"""us"""
GROWTH_GATE = 1024
"""kB from a fifth of a run to its end: under two bytes a period in ten minutes, so that nothing is kept of each."""
SHORTEST, RUNS = 1.0, 60
"""s that are worth another run, and runs at most."""
BEFORE = 0.5
"""s before a stop in which a witness that woke late tells why."""


def bare(port: int, seconds: float) -> dict[str, Any]:
    """A loop that only sends and receives."""
    robot = UdpRobot("127.0.0.1", port)
    link = Link(robot, load_robot("quadruped"))
    hold, periods = np.zeros((5, len(robot.joints))), Times()
    hold[0], hold[2], hold[3] = robot.read()["q"], 50.0, 1.5
    with undisturbed():
        claim()
        pace, end, last = Pace(robot.period), time.monotonic() + seconds, math.nan
        while (now := pace.wait()) < end:
            if last == last:
                periods.add(now - last)
            last = now
            link.look()
            link.send(hold, now)
    robot.stop()
    return {"missed": pace.missed, "period": periods.json(), "round_trip": link.round_trip.json()}


def piece(port: int, seconds: float) -> Runner:
    """One run against the stand-in."""
    policy, model = load_policy(POLICY), load_robot("quadruped")
    with tempfile.TemporaryDirectory() as name:
        runner = Runner(UdpRobot("127.0.0.1", port), model, policy, (0.4, 0.0, 0.0), limits_of(model, policy.contract))
        runner.record(lambda channels: Recorder(Path(name) / "run.mcap", {}, channels))
        runner.check()
        runner.run(seconds)
    return runner


def together(times: Sequence[Times]) -> Times:
    """All of some histograms in one."""
    out = Times()
    for each in times:
        out.counts += each.counts
        out.count, out.largest = out.count + each.count, max(out.largest, each.largest)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--no-load", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    runs, left = list[Runner](), given.seconds
    with tempfile.TemporaryDirectory() as name, witnesses() as late:
        server, port = served(Path(name), 2 * given.seconds + 60)
        load = None if given.no_load else subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            alone = bare(port, min(20.0, given.seconds / 4))
            while left > SHORTEST and len(runs) < RUNS:
                runs.append(piece(port, left))
                left -= runs[-1].outcome.seconds
                console.print(f"{given.seconds - left:.0f} s of {given.seconds:.0f}: {runs[-1].outcome.reason or 'done'}")
        finally:
            if load is not None:
                load.kill()
            server.terminate()
        told = json.loads(server.communicate()[0])
    ends = [r.safety.ladder.events[0] for r in runs if r.outcome.reason]
    outcomes, links = [r.outcome for r in runs], [r.link for r in runs]
    times = {
        "period": [r.periods for r in runs],
        "computing": [r.computing for r in runs],
        "answering": [r.answering for r in runs],
        "round_trip": [link.round_trip for link in links],
        "policy": [r.thinking for r in runs],
    }
    ticks, missed = sum(r.periods.count for r in runs), sum(o.missed for o in outcomes)
    out = {
        "bare": alone,
        "seconds": round(given.seconds - left, 1),
        "runs": len(runs),
        "longest_run": round(max(o.seconds for o in outcomes), 1),
        "ended_by": [
            {"reason": why, "witness_late_ms": round(1e3 * max((d for t, d in late if 0.0 < end - t < BEFORE), default=0.0), 1)}
            for end, _, why in ends
        ],
        "witness": {"late": len(late), "longest_ms": round(1e3 * max((d for _, d in late), default=0.0), 1)},
        "ticks": ticks,
        "missed": missed,
        "missed_share": round(missed / max(1, ticks), 6),
        "missed_policy": sum(o.missed_policy for o in outcomes),
        "times_us": {what: together(each).json() for what, each in times.items()},
        "growth_kb": round(max(o.growth for o in outcomes) / 1024),
        "readings_lost": sum(link.lost for link in links),
        "exceeded": sum(v["exceeded"] for k, v in told["limits"].items() if k in GATED),
        "robot_missed": told["missed"],
        "load": os.getloadavg()[0],
    }
    quick, flat = out["times_us"]["computing"]["p99"] <= COMPUTING_GATE, out["growth_kb"] <= GROWTH_GATE
    out["passed"] = bool(quick and flat and not ends)
    if not given.json:
        console.print(out)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
