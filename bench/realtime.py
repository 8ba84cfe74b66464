"""A 1 kHz inner loop against a stand-in in another process over UDP, with another core loaded: deadlines, periods, latencies.

    python -m bench.realtime [--seconds 600] [--no-load] [--json]

Gates: the 99th percentile of computing time at most 200 us, and no growth of memory. Reported: missed deadlines; p50, p99 and
p99.9 of the period, of computing (processor time of the loop's thread), of answering (what it waits included), and of the time
from a command to the first state that is known to come after it. Beside it the same loop without policy and safety layer: what
this machine's clock and network alone do.
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
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.safety import GATED, POLICY, served
from gapless.deploy import Link, Pace, Recorder, Runner, Times, UdpRobot, claim, limits_of, undisturbed
from gapless.policy import load_policy
from gapless.robots import load_robot

console = Console(stderr=True)
COMPUTING_GATE = 200.0
"""us"""


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--no-load", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        server, port = served(Path(name), given.seconds + 60)
        load = None if given.no_load else subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            out["bare"] = bare(port, min(20.0, given.seconds / 4))
            policy, model = load_policy(POLICY), load_robot("quadruped")
            runner = Runner(UdpRobot("127.0.0.1", port), model, policy, (0.4, 0.0, 0.0), limits_of(model, policy.contract))
            runner.record(lambda channels: Recorder(Path(name) / "run.mcap", {}, channels))
            runner.check()
            ran = runner.run(given.seconds)
        finally:
            if load is not None:
                load.kill()
            server.terminate()
        told = json.loads(server.communicate()[0])
    out |= {
        "seconds": round(ran.seconds, 1),
        "ticks": ran.ticks,
        "missed": ran.missed,
        "missed_share": round(ran.missed / max(1, ran.ticks), 6),
        "missed_policy": ran.missed_policy,
        "reason": ran.reason,
        "times_us": ran.times,
        "growth_kb": round(ran.growth / 1024),
        "readings_lost": runner.link.lost,
        "exceeded": sum(v["exceeded"] for k, v in told["limits"].items() if k in GATED),
        "robot_missed": told["missed"],
        "load": os.getloadavg()[0],
    }
    out["passed"] = bool(ran.times["computing"]["p99"] <= COMPUTING_GATE and not ran.reason)
    if not given.json:
        console.print(out)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
