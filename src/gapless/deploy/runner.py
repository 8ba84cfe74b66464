"""The runner: a policy on a live robot, an inner loop at its own rate, the safety layer between, all of it recorded."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gapless.arrays import Array
from gapless.deploy.adaptive import Adaptive
from gapless.deploy.envelope import BAD_MODES, refusals, suits, together
from gapless.deploy.ladder import SINKS, STALE, Rung, let_go
from gapless.deploy.limits import Limits
from gapless.deploy.link import Link
from gapless.deploy.realtime import Pace, Times, claim, resident, undisturbed
from gapless.deploy.recording import Channel, Recorder
from gapless.deploy.safety import AGE, Safety
from gapless.deploy.soft import Move
from gapless.deploy.watch import Watch
from gapless.errors import BadInput
from gapless.policy import Pilot, Policy
from gapless.robots import RobotModel

GROW, SETTLE = 0.08, 0.5
"""s in which the gains grow where the robot is, and after which it moves."""
SLOW_THINGS = 0.05
"""s between two looks at temperature, battery and mode."""
FIRST, DAMPED = 1.0, 1.5
"""s in which the first reading comes, and for which a robot is damped at least before it is let go of."""
WAIT, START, RUN, STOP, DONE = "wait", "start", "run", "stop", "done"


@dataclass
class Outcome:
    """What a run came to."""

    ticks: int = 0
    answers: int = 0
    """Of the policy."""
    missed: int = 0
    """Deadlines of the inner loop that were missed, and below those of the policy."""
    missed_policy: int = 0
    seconds: float = 0.0
    began: float = 0.0
    """When the policy took over, after the first command [s]."""
    rung: str = Rung.RUN.name
    first: str = Rung.RUN.name
    """The rung that the first reason for a stop led to."""
    reason: str = ""
    events: list[tuple[float, str, str]] = field(default_factory=list)
    growth: int = 0
    """Bytes by which the process grew while the policy ran, after its first fifth."""
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    """Percentiles [us] of the inner loop's period, its computing (processor time) and answering (with waiting for interpreter
    and processor), of the round trip, and of the policy's answers."""
    warnings: int = 0
    """Of the watch."""


class Runner:
    """Runs a policy on a robot: `check`, then `run`.

    A robot with a clock of its own is served by three threads: the inner loop, the policy and the recorder. One that only
    moves when it is told (a stand-in in this process) is run in step, as quickly as it goes.
    """

    def __init__(
        self,
        robot: object,
        model: RobotModel,
        policy: Policy,
        command: Sequence[float],
        limits: Limits,
        age: float = AGE,
        adaptive: bool = False,
        watch: Watch | None = None,
        smooth: float = 0.0,
    ):
        """Refuse a robot that the policy is not for; nothing is sent.

        Args:
            robot: anything that follows the protocol.
            model: of the robot.
            policy: which must have passed its check.
            command: what it is asked for, in the order of the contract's commands.
            limits: of the robot.
            age: of a reading when a command that answers it acts [s].
            adaptive: whether the inner loop adapts (see `Adaptive`).
            watch: the twin beside the robot.
            smooth: time constant of a low-pass filter of the targets at the inner rate; 0 for none [s].
        """
        contract = policy.contract
        self.link, self.contract = Link(robot, model), contract
        suits(self.link, contract)
        if (adaptive or smooth > 0) and contract.action.kind != "position":
            raise BadInput(f"this policy gives {contract.action.kind}; only targets of positions can be adapted or smoothed")
        for (name, span), value in zip(contract.commands.items(), command, strict=False):
            low, high = span or (-math.inf, math.inf)
            if not (math.isfinite(value) and low <= value <= high):
                raise BadInput(f"the policy is asked for {name} = {value:g}, and was trained for {low:g} to {high:g}")
        self.model = replace(model, control_dt=float(contract.timing.control_dt or 0.0))
        self.pilot = Pilot(policy, self.model, command)
        self.limits = limits
        self.policy_period = self.model.control_dt
        self.every = round(self.policy_period / self.link.period)
        self._slow = max(1, round(SLOW_THINGS / self.link.period))
        self.safety = Safety(limits, model, self.link.period, self.policy_period, age)
        n = len(model.joints)
        self._wanted, self._next = np.zeros((5, n)), np.zeros((5, n))
        self._lock, self._number, self._taken = threading.Lock(), 0, 0
        self._gains()
        self._move: Move | None = None
        self.phase, self._since, self._first, self.computed = WAIT, 0.0, 0.0, 0.0
        self.adaptive = Adaptive(limits, self._kp, self._kd, self.link.period) if adaptive else None
        self.watch = watch
        self._smooth, self._target = 1.0 - math.exp(-self.link.period / smooth) if smooth > 0 else 1.0, np.zeros(n)
        self.outcome = Outcome()
        self.recorder: Recorder | None = None
        self._channels: list[Channel] = []
        self.periods, self.computing, self.answering, self.thinking = Times(), Times(), Times(), Times()
        self._ended, self._memory = threading.Event(), 0
        self.on_tick: Callable[[float], None] | None = None

    def _gains(self) -> None:
        """Gains of the drives as the contract says; joints that it does not know hold with their model's."""
        table, of = self.model.joint_table, self.contract.joints
        self._kp, self._kd = np.array([j.kp for j in table]), np.array([j.kd for j in table])
        self._home = np.array([self.model.home[d.qpos] for d in self.model.drives])
        for k, name in enumerate(of.names):
            i = self.model.joints.index(name)
            self._kp[i] = of.kp[k] if of.kp else self._kp[i]
            self._kd[i] = of.kd[k] if of.kd else self._kd[i]
            self._home[i] = of.default_pos[k] if of.default_pos else self._home[i]

    def record(self, recorder: Callable[[Sequence[Channel]], Recorder]) -> None:
        """Record the run: `recorder` makes the file from the channels."""
        joints, floating = self.model.joints, bool(len(self.link.imu))
        measured = dict.fromkeys(("q", "dq", "tau", "temperature"), joints)
        measured |= {"quat": tuple("wxyz"), "gyro": tuple("xyz")} if floating else {}
        told = dict.fromkeys(("q_cmd", "dq_cmd", "kp", "kd", "tau_ff"), joints) | {"computed": ("s",)}
        seen = {
            "observation": tuple(str(i) for i in range(self.contract.width)),
            "action": tuple(self.contract.action.joints),
        }
        self._channels = [Channel(1, "/robot", measured), Channel(2, "/command", told), Channel(3, "/policy", seen)]
        self.recorder = recorder(self._channels)

    def check(self) -> None:
        """Look at the robot before the first command; raise with all reasons why it may not be started."""
        wrong = refusals(self.link, self.model, self.contract, self.limits)
        if wrong:
            raise together(wrong)
        self.link.time = -math.inf  # what was looked at counts as new for the loop

    def ask(self, command: Sequence[float]) -> None:
        """Ask the policy for something else from now on, within what it was trained for."""
        ranges = list(self.contract.commands.values())
        if len(command) != len(ranges):
            raise BadInput(f"the policy takes {len(ranges)} commands, not {len(command)}")
        for i, (value, span) in enumerate(zip(command, ranges, strict=True)):
            if math.isfinite(value):
                self.pilot.runtime.command[:, i] = np.clip(value, *span) if span else value

    def stop(self) -> None:
        """Ask for a soft stop: the policy ends, the robot comes down slowly."""
        self._ended.set()

    def emergency(self) -> None:
        """Damp the robot at once."""
        self.safety.climb("emergency", self.link.now())

    def run(self, seconds: float) -> Outcome:
        """Start the robot, run the policy for some seconds, and stop it; whatever happens, the robot is left safe."""
        try:
            if self.link.realtime:
                with undisturbed():
                    self.link.begin()
                    self._run_live(seconds)
            else:
                self._run_in_step(seconds)
        except Exception as error:
            self._failed(error, "broken")
        finally:
            self.phase = DONE
            self.link.stop()
            if self.recorder is not None:
                ladder = self.safety.ladder
                self.recorder.event(kind="end", reason=ladder.reason, rung=ladder.rung.name, first=ladder.first.name)
                self.recorder.close()
            self._finish()
        return self.outcome

    def _failed(self, error: Exception, why: str) -> None:
        now = self.link.now()
        self.safety.climb(why, now)
        self.outcome.events.append((now, self.safety.rung.name, f"{type(error).__name__}: {error}"))

    def _run_in_step(self, seconds: float) -> None:
        count, self._since = 0, self.link.now()
        while self.phase != DONE:
            self._inner(seconds)
            if self.phase == RUN and not self.safety.rung:
                if count % self.every == 0:
                    self._answer(self._reading())
                count += 1

    def _answer(self, reading: dict[str, Array]) -> None:
        try:
            self._think(reading)
        except Exception as error:
            self._failed(error, "policy broken")

    def _reading(self) -> dict[str, Array]:
        """The last reading that can be true, for the policy."""
        good, link = self.safety.plausible, self.link
        out: dict[str, Array] = {"time": np.array(good.time), "q": good.q.copy(), "dq": good.dq.copy(), "tau": link.tau.copy()}
        return out | ({"quat": good.imu[:4].copy(), "gyro": good.imu[4:].copy()} if len(good.imu) else {})

    def _run_live(self, seconds: float) -> None:
        thinker = threading.Thread(target=self._think_along, name="policy", daemon=True)
        thinker.start()
        claim()
        pace, last, self._since = Pace(self.link.period), math.nan, self.link.now()
        while self.phase != DONE:
            now = pace.wait()
            if self.phase == RUN:
                self.periods.add(now - last)
            last, spent = now, time.thread_time()
            self._inner(seconds)
            if self.phase == RUN:
                self.computing.add(time.thread_time() - spent)
                self.answering.add(time.monotonic() - now)
                self.outcome.missed += pace.missed
            pace.missed = 0
        self._ended.set()
        thinker.join(1.0)

    def _think_along(self) -> None:
        """The policy's own thread."""
        claim(30)
        pace = Pace(self.policy_period)
        while self.phase in (WAIT, START, RUN):
            pace.wait()
            if self.phase == RUN and not self.safety.rung:
                with self._lock:
                    snapshot = self._reading()
                self._answer(snapshot)
                self.outcome.missed_policy += pace.missed
            pace.missed = 0

    def _think(self, reading: dict[str, Array]) -> None:
        """One answer of the policy."""
        start = time.perf_counter()
        target, kind = self.pilot(reading), self.contract.action.kind
        answer = self._next
        with self._lock:
            answer[0], answer[1], answer[2], answer[3], answer[4] = self._home, 0.0, self._kp, self._kd, 0.0
            if kind == "position":
                answer[0] = target
            elif kind == "velocity":
                answer[1], answer[2] = target, 0.0
            else:
                answer[2], answer[3], answer[4] = 0.0, 0.0, target
            self.computed = self.link.now()
            self._number += 1
        self.outcome.answers += 1
        self.thinking.add(time.perf_counter() - start)
        if self._channels:
            row, runtime = self._channels[2].row(), self.pilot.runtime
            row[0], row[1] = reading["time"], self.computed
            width = runtime.observation.shape[1]
            row[2 : 2 + width], row[2 + width :] = runtime.observation[0], runtime.action[0]
            self._channels[2].done()
        if self.watch is not None:
            alarm = self.watch.see(reading, target, self.link.now())
            if alarm:
                self.safety.climb("watch", self.link.now())
            self.outcome.warnings = self.watch.warnings

    def _inner(self, seconds: float) -> None:
        """One period of the inner loop."""
        link, safety = self.link, self.safety
        with self._lock:  # the policy's thread takes a reading whole or not at all
            new, now = link.look(), link.now()
            if new:
                safety.see(link.q, link.dq, link.imu, link.time, now)
        if not new:
            safety.unseen(now)
            if math.isinf(safety.plausible.time):  # nothing is commanded before anything was read
                if now - self._since > FIRST:
                    safety.climb("silent", now)
                if safety.rung or self._ended.is_set():
                    self.phase = DONE
                return
        if self.outcome.ticks % self._slow == 0:
            safety.supply(link.temperature, link.battery, now)
            if self.phase != WAIT and link.mode in BAD_MODES:
                safety.climb("mode", now)
            if link.others():
                safety.climb("second", now)
        if link.unsent * link.period > STALE:
            safety.climb("unsent", now)
        fresh = self._choose(now, seconds)
        if self.adaptive is not None and self.phase == RUN:
            self._wanted[4] = self.adaptive(safety.plausible.q, safety.plausible.dq, self._wanted[0])
        command = safety.answer(self._wanted, fresh, now)
        if safety.rung is Rung.CUT:
            link.stop()
        else:
            link.send(command, self.computed)
        self.outcome.ticks += 1
        if self._channels:
            self._write_rows(new, command, now)
        if self.on_tick is not None:
            self.on_tick(now)

    def _choose(self, now: float, seconds: float) -> bool:
        """What is asked for in this phase, into `_wanted`; whether that is new."""
        wanted = self._wanted
        if self.phase == WAIT:
            self._begin(START, now)
            wanted[0], wanted[3] = self.safety.plausible.q, self._kd
            self._move = Move(self.safety.plausible.q, self._home, self.limits, self.link.period)
        since = now - self._since
        if self.phase in (START, RUN) and (self.safety.rung or self._ended.is_set()):
            self._begin(STOP, now)
        if self.phase == START:
            wanted[2] = self._kp * min(1.0, since / GROW)
            if since > SETTLE and self._move is not None:
                wanted[0], wanted[1] = self._move.at(since - SETTLE)
                if since > 2 * SETTLE + self._move.seconds:
                    self._target[:] = self._home
                    self._begin(RUN, now)
            return True
        if self.phase == RUN:
            if not self._memory and since > seconds / 5:
                self._memory = resident()
            if since > seconds:
                self._begin(STOP, now)
                return True
            if not self._number and since > 0.2:
                return False
            return self._followed() if self._number else True
        rung, damped = self.safety.rung, now - max(self._since + SINKS, self.safety.ladder.since)
        if not rung:
            self._rest(now - self._since)
        elif rung is Rung.CUT or (rung is Rung.DAMP and damped > DAMPED):
            self.phase = DONE
        return True

    def _rest(self, since: float) -> None:
        """A stop without a reason: back to the default pose if the policy ran, then down."""
        if self._move is None:
            here = np.clip(self.safety.plausible.q, self.limits.low, self.limits.high)
            self._move = Move(here, self._home if self.outcome.began else here, self.limits, self.link.period)
        self._wanted[0], self._wanted[1] = self._move.at(since)
        self._wanted[2], self._wanted[3], self._wanted[4] = self._kp, self._kd, 0.0
        down = since - self._move.seconds
        if down > 0:
            self._wanted[2] *= let_go(down)
        if down > SINKS:
            self.phase = DONE

    def _begin(self, phase: str, now: float) -> None:
        if phase == START:
            self._first = now
        elif phase == RUN:
            self.outcome.began = now - self._first
        elif phase == STOP:
            self._move = None
            if self.phase == RUN:
                self.outcome.seconds = now - self._since
                self.outcome.growth = max(0, resident() - self._memory) if self._memory else 0
        self.phase, self._since = phase, now
        if self.recorder is not None:
            self.recorder.event(kind="phase", phase=phase, time=self.link.time)

    def _followed(self) -> bool:
        """The policy's newest answer, its targets smoothed where that was asked for; whether there is a new one."""
        fresh, target = self._take(), self._next[0]
        if self._smooth < 1.0:
            self._target += self._smooth * (target - self._target)
            self._wanted[0] = self._target
        return fresh

    def _take(self) -> bool:
        """Take the policy's newest answer, if there is one."""
        with self._lock:
            if self._number == self._taken:
                return False
            self._wanted[:] = self._next
            self._taken = self._number
        return True

    def _write_rows(self, new: bool, command: Array, now: float) -> None:
        link, n = self.link, len(self.link.q)
        if new:
            row = self._channels[0].row()
            row[0], row[1] = link.time, link.arrived
            row[2 : 2 + n], row[2 + n : 2 + 2 * n], row[2 + 2 * n : 2 + 3 * n] = link.q, link.dq, link.tau
            row[2 + 3 * n : 2 + 4 * n] = link.temperature
            if len(link.imu):
                row[2 + 4 * n :] = link.imu
            self._channels[0].done()
        row = self._channels[1].row()
        sent = link.now()
        row[0], row[1], row[-1] = sent - (link.offset if math.isfinite(link.offset) else 0.0), sent, self.computed
        row[2:-1].reshape(5, n)[:] = command
        self._channels[1].done()

    def _finish(self) -> None:
        ladder, out = self.safety.ladder, self.outcome
        out.rung, out.first, out.reason = ladder.rung.name, ladder.first.name, ladder.reason
        out.events = [(at - self._first, rung, why) for at, rung, why in sorted([*out.events, *ladder.events])]
        if self.link.trouble:
            out.events.append((self.link.now() - self._first, ladder.rung.name, f"of the robot's driver: {self.link.trouble}"))
        if self.recorder is not None and self.recorder.trouble:
            out.events.append((self.link.now() - self._first, ladder.rung.name, f"the recording: {self.recorder.trouble}"))
        named = {
            "period": self.periods,
            "computing": self.computing,
            "answering": self.answering,
            "round_trip": self.link.round_trip,
            "policy": self.thinking,
        }
        out.times = {name: times.json() for name, times in named.items() if times.count}
