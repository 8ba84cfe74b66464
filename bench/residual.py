"""What learned torque adds to the best fit, on motion that it has not seen: real logs, stand-ins, and nothing to learn.

    python -m bench.residual [--json] [--only so101,go2,pendulum,xl330,zero,standins,support,cost,actuator,drives,
        delta,floating]

In degrees (XL330: rad), in the full model, `..._physics` beside what the rung makes of it, on the splits of `bench.identify`;
`..._worst` is the joint that loses most, as a share. Networks are kept by what `--residual auto` sees: training logs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from bench.data import DATA
from bench.delta import delta, floating
from bench.harness import Case, interleave
from bench.identify import _only, _tip
from gapless.arrays import Array
from gapless.identify import Fit, fit_admitted
from gapless.logs import Log, read
from gapless.measure import windows
from gapless.residual import Learnt, in_model, learn, learn_actuator
from gapless.robots import Drive, torque_limit
from gapless.twin import (
    DRIVE_HIDDEN,
    Backlash,
    DriveLaw,
    DriveNet,
    Flex,
    Friction,
    Hysteresis,
    Net,
    Point,
    Residual,
    Ripple,
    Twin,
    as_given,
    learned,
)
from gapless.worlds import StandIn, StandInSpec, Worlds, build_standin, plan_motion, record, replay


def grown(twin: Twin, logs: Sequence[Log], mode: str = "auto") -> tuple[Fit, Fit, Learnt]:
    """The best fit to logs, the same with learned torque, and what was learned."""
    found = fit_admitted(twin, logs, print)
    more, learnt = learn(found, logs, mode, print)  # type: ignore[arg-type]
    assert learnt is not None
    print(learnt)
    return found, more, learnt


def rms(error: Array) -> Array:
    """By joint [deg]. error: (samples, joints) [rad]."""
    return np.asarray(np.degrees(np.sqrt((error**2).mean(axis=0))))


def pair(name: str, before: Array, after: Array) -> dict[str, float]:
    """A figure before and after, and the joint that loses most, as a share of what it had. before, after: by joint."""
    means = {f"{name}_physics": float(before.mean()), name: float(after.mean())}
    worst = int(np.argmax(np.minimum(after / before - 1, (after - before) / 0.02)))
    return means | {
        f"{name}_worst": float(after[worst] / before[worst] - 1),
        f"{name}_worst_deg": float((after - before)[worst]),
    }


def go2() -> dict[str, float]:
    """Even blocks of 2 s to odd ones, and the first half to the faster second; root mean square over samples and joints."""
    log = read(DATA / "go2_inair/go2_inair.npz", mapping="go2_inair")
    twin = as_given(DATA / "go2_inair/model/go2_fixed_base.xml", log)
    clock = log["q"].time - log["q"].time[0]
    out: dict[str, float] = {}
    for name, train in (("go2", (clock // 2).astype(int) % 2 == 0), ("go2_faster", clock < clock[-1] / 2)):
        *fits, learnt = grown(twin, [_only(log, train)])
        before, after = (rms(replay(f.twin, log, f.values).error("q")[0, 0][~train]) for f in fits)
        out |= pair(name, before, after)
        out |= {f"{name}_physics": float(np.sqrt((before**2).mean())), name: float(np.sqrt((after**2).mean()))}
        out |= {f"{name}_learning_s": learnt.seconds}
    return out


def so101() -> dict[str, float]:
    """Training motions to 60 s of the validation motions; mean of the five arm joints, and off the table."""
    split = json.loads((DATA / "so101/split.json").read_text())
    twin = Twin.load(DATA / "so101/model/so101.xml", add=[Friction(full=True)])
    *fits, learnt = grown(twin, [read(DATA / "so101/motions" / m, mapping="so101") for m in split["train"]])
    errors: list[list[Array]] = [[], []]
    tips: list[Array] = []
    for motion in split["validation"]:
        log = read(DATA / "so101/motions" / motion, mapping="so101")
        results = [replay(f.twin, log, f.values, end=60.0) for f in fits]
        for some, result in zip(errors, results, strict=True):
            some.append(result.error("q")[0, 0])
        tips.append(_tip(fits[0], results[0].measured["q"][0]))
    off = np.concatenate(tips) > 0.005  # m above the table: not in contact
    every = [np.concatenate(some)[:, :5] for some in errors]
    clear = pair("so101_clear", *(rms(e[off]) for e in every))
    return pair("so101", *map(rms, every)) | clear | {"so101_learning_s": learnt.seconds}


def pendulum() -> dict[str, float]:
    """Design C.1, even logs to odd ones, windows of 0.5 s."""
    logs = [read(f, mapping="double_pendulum") for f in sorted((DATA / "double_pendulum/design_C.1").glob("*.csv.gz"))]
    twin = Twin.load(DATA / "double_pendulum/model/double_pendulum.xml", add=[Friction(full=True)])
    *fits, learnt = grown(twin, logs[0::2])
    errors = [rms(windows(f.twin, logs[1::2]).errors(f.values[None])[0]) for f in fits]
    each = {f"pendulum_q{j + 1}{n}": float(e[j]) for n, e in zip(("_physics", ""), errors, strict=True) for j in (0, 1)}
    return each | {"pendulum_learning_s": learnt.seconds}


def xl330() -> dict[str, float]:
    """Gains 100 and 800 to gain 200; mean absolute error [rad]."""
    logs = {kp: [read(f, mapping="xl330") for f in sorted((DATA / "xl330/logs").glob(f"kp{kp}_*"))] for kp in (100, 200, 800)}
    train = logs[100] + logs[800]
    found = fit_admitted(as_given(DATA / "xl330/model/xl330_bench.xml", train[0]), train, print)
    more, learnt = learn(found, train, "auto", print)
    errors = [
        np.concatenate([np.abs(replay(f.twin, log, f.values).error("q")[0, 0]) for log in logs[200]]).mean()
        for f in (found, more)
    ]
    for text in more.warnings:
        print(text)
    return {"xl330_physics": float(errors[0]), "xl330": float(errors[1]), "xl330_learning_s": learnt.seconds if learnt else 0.0}


@contextlib.contextmanager
def lacking() -> Iterator[None]:
    """Within, a fit does not try the structures that a stand-in hides: its twin lacks them."""
    with contextlib.ExitStack() as stack:
        for kind in (Hysteresis, Ripple, Flex, Backlash):
            stack.enter_context(mock.patch.object(kind, "suspected", lambda model, motion: None))
        yield


def hidden(robot: str, what: str) -> StandInSpec:
    """A robot with something that the twin lacks, of a size as met in practice: 4 % of the torque limit, a spring of 0.8 of
    the drive's stiffness, play of 20 mrad."""
    twin = Twin.load(robot, in_air=robot == "quadruped")
    limits = {d.name: torque_limit(twin.model, d.actuator) for d in twin.drives}
    kp = min(p.nominal for p in twin.space.parameters if p.quantity == "gains.kp")
    add: dict[str, dict[str, Any]] = {
        "hysteresis": {"windup": 0.05},
        "ripple": {"periods": dict.fromkeys(twin.joints, 9.0)},
        "flex": {"stiffness": 0.8 * kp, "damping": 0.004 * kp},
        "backlash": {"width": 0.02},
        "nothing": {},
    }
    quantity = {"hysteresis": "hysteresis.torque", "ripple": "ripple.sine"}.get(what)
    change: dict[str, float | str] = {f"{quantity}/{j}": 0.04 * limit for j, limit in limits.items()} if quantity else {}
    return StandInSpec(
        robot,
        seed=5,
        in_air=robot == "quadruped",
        tolerance=0.0 if what == "nothing" else 1.0,
        change=change,
        add={what: add[what]} if add[what] else {},
        sensors={"noise_q": 0.0003},
        timestep=twin.model.opt.timestep / 8 if what == "flex" else None,  # a spring rings faster than half steps follow
    )


def recorded(spec: StandInSpec, seed: int, seconds: float = 24.0, slower: float = 1.0) -> Log:
    """A log of a stand-in in rich motion, so many times slower than usual."""
    robot, twin = StandIn(spec), build_standin(spec)
    plan = plan_motion("rich", twin, seconds, np.random.default_rng(seed))
    at = np.arange(len(plan)) / slower
    slow = np.column_stack([np.interp(at, np.arange(len(plan)), column) for column in plan.T])
    return record(robot, slow, source=f"rich {seed}")


def fitted(spec: StandInSpec, train: Log, mode: str = "auto") -> tuple[Fit, Fit, Learnt | None]:
    """Physics that lacks what the stand-in hides, the same with learned torque, and what was learned."""
    twin = Twin.load(spec.robot, add=[Friction(full=True)], in_air=spec.in_air)
    with lacking():
        found = fit_admitted(twin, [train], lambda text: None)
    more, learnt = learn(found, [train], mode, lambda text: None)  # type: ignore[arg-type]
    print(learnt, more.warnings)
    return found, more, learnt


def standins() -> dict[str, float]:
    """Share of the error left by physics that learned torque removes, on another motion of the same stand-in."""
    out: dict[str, float] = {}
    for robot in ("bench", "arm", "quadruped"):
        for what in ("hysteresis", "ripple", "flex", "backlash"):
            spec = hidden(robot, what)
            train, test = (recorded(spec, seed) for seed in (1, 2))
            found, more, _ = fitted(spec, train)
            before, after = (rms(replay(f.twin, test, f.values).error("q")[0, 0]).mean() for f in (found, more))
            out |= {f"{robot}_{what}_physics": float(before), f"{robot}_{what}_removed": float(1 - after / before)}
            print(out)
    return out


def zero() -> dict[str, float]:
    """A stand-in without secrets: what is learned though there is nothing to learn, by auto and when forced."""
    out: dict[str, float] = {}
    for robot in ("bench", "arm", "quadruped"):
        spec = hidden(robot, "nothing")
        train, test = (recorded(spec, seed) for seed in (1, 2))
        for mode in ("auto", "force"):
            found, more, learnt = fitted(spec, train, mode)
            before, after = (rms(replay(f.twin, test, f.values).error("q")[0, 0]).mean() for f in (found, more))
            size = max((j.size for j in learnt.joints.values() if j.kept), default=0.0) if learnt and learnt.kept else 0.0
            out |= {f"zero_{robot}_{mode}": float(after / before - 1), f"zero_{robot}_{mode}_torque": size}
    return out


def support() -> dict[str, float]:
    """Trained on motion three times slower than it is tested on."""
    out: dict[str, float] = {}
    for robot, what in (("arm", "hysteresis"), ("quadruped", "hysteresis"), ("arm", "flex")):
        spec = hidden(robot, what)
        found, more, _ = fitted(spec, recorded(spec, 1, slower=3.0))
        test = recorded(spec, 2)
        before, after = (rms(replay(f.twin, test, f.values).error("q")[0, 0]).mean() for f in (found, more))
        out |= {f"support_{robot}_{what}": float(after / before - 1)}
    return out


def with_networks(plain: Twin) -> Twin:
    """A network of any torque at every joint, for what it costs."""
    rng = np.random.default_rng(0)
    inputs, weights = [tuple([v] * learned.COUNT) for v in (0.0, 1.0, -3.0, 3.0)], learned.weights(16)
    member = tuple((0.1 * rng.standard_normal(weights)).tolist())
    nets = [Net(d.name, d.signal, plain.model.opt.timestep, 0.1, 1.0, *inputs, (member,)) for d in plain.drives]
    return plain.plus(Residual(tuple(nets)))


def cost() -> dict[str, float]:
    """What a network at every joint adds to a step of a quadruped in Worlds, as a share of it, beside or for its drives."""
    plain = Twin.load("quadruped")
    laws = DriveLaw(tuple(_as_given(plain, d) for d in plain.drives))
    cases = []
    for name, twin in (("plain", plain), ("learned", with_networks(plain)), ("drives", plain.plus(laws))):
        worlds = Worlds(twin, 256, Point(twin.space, twin.space.nominal), threads=2)
        told = np.tile(worlds.home_command, (256, 1))
        cases.append(Case(name, lambda r, w=worlds, c=told: [w.step(c) for _ in range(4)]))  # type: ignore[misc]
    interleave(cases, 40)
    cost, of_drives = (float(np.median(np.array(c.cpu) / np.array(cases[0].cpu)) - 1) for c in cases[1:])
    return {"cost": cost, "cost_drives": of_drives}


def _as_given(twin: Twin, d: Drive) -> DriveNet:
    """A network that gives what the drive gives anyway, so that motion and its cost stay what they are."""
    kp, kd = twin.model.actuator_gainprm[d.actuator, 0], -twin.model.actuator_biasprm[d.actuator, 2]
    units = DRIVE_HIDDEN
    inward, across, outward = np.full((units, 7), 1e-12), np.full((units, units + 1), 1e-12), np.full(units + 1, 1e-12)
    inward[0, :2], across[0, 0], outward[0] = (1e-4 * kp, -1e-4 * kd), 1.0, 1.0  # so little that softsign is a line
    inputs = [tuple([v] * 6) for v in (0.0, 1.0, -30.0, 30.0)]
    rows = [tuple(tuple(row) for row in m.tolist()) for m in (inward, across)]
    return DriveNet(d.name, "q", *inputs, (0.0, 1e4), 20.0, *rows, tuple(outward.tolist()))  # type: ignore[arg-type]


def actuator() -> dict[str, float]:
    """Measured torque on the last 30 % of each log [N m]: network, linear regression on the same history, best delayed PD."""
    out: dict[str, float] = {}
    files = {
        "pendulum": ("double_pendulum", sorted((DATA / "double_pendulum/design_C.1").glob("*.csv.gz"))),
        "hopper": ("odri_hopper", [DATA / "odri_hopper/logs/jump.csv.gz"]),
    }
    for name, (mapping, paths) in files.items():
        for joint, laws in learn_actuator([read(f, mapping=mapping) for f in paths]).joints.items():
            for law in ("network", "linear", "pd_delayed", "pd"):
                out[f"actuator_{name}_{joint}_{law}"] = getattr(laws, law)
    return out


def drives() -> dict[str, float]:
    """Networks in the place of drives, on unseen motion [rad]: beside the exact PD law of a servo with windup, delay and a
    torque-speed line (and with what is around the network fitted; and a plain fit), and beside the best PD law of the real
    double pendulum."""
    spec = StandInSpec(
        "bench",
        seed=3,
        tolerance=0.0,
        control_dt=0.005,
        timestep=0.0025,
        add={"motor": {"no_load_speed": 4.0}, "hysteresis": {"windup": 0.05}},
        change={"hysteresis.torque/*": 0.15, "latency.action": 0.008},
    )
    train, test = recorded(spec, 1, 16.0), recorded(spec, 2, 8.0)
    given = as_given("bench", train)
    grown = in_model(learn_actuator([train]), given, [train]).twin
    assert grown is not None
    around, physics = (fit_admitted(twin, [train], print) for twin in (grown, given))
    exact = given.space.values({"latency.action": 0.008})  # its gains are the model's
    cases = {"pd": (given, exact), "network": (grown, grown.space.nominal)}
    cases |= {"fitted": (around.twin, around.values), "physics": (physics.twin, physics.values)}
    out = {
        f"drives_servo_{k}": float(np.radians(rms(replay(t, test, v).error("q")[0, 0]).mean())) for k, (t, v) in cases.items()
    }
    logs = [read(f, mapping="double_pendulum") for f in sorted((DATA / "double_pendulum/design_C.1").glob("*.csv.gz"))]
    learnt = in_model(learn_actuator(logs), as_given(DATA / "double_pendulum/model/double_pendulum.xml", logs[0]), logs)
    for joint, laws in learnt.model.items():
        out |= {f"drives_pendulum_{joint}_{law}": getattr(laws, law) for law in ("given", "pd", "network")}
    return out


def main() -> None:
    parts = (so101, go2, pendulum, xl330, zero, standins, support, cost, actuator, drives, delta, floating)
    every = {f.__name__: f for f in parts}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", default=",".join(every), help="which parts, by comma")
    options = parser.parse_args()
    result: dict[str, float] = {}
    for name in options.only.split(","):
        result |= every[name]()
    for name, value in result.items():
        print(f"{name:32} {value:.4f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
