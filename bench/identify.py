"""How well fits predict real motion that they have not seen, on the frozen splits of the public data.

    python -m bench.identify [--json] [--only so101,go2]

In degrees (XL330: rad), in the full model, beside the command as prediction and the model as published. The same defaults for
all; stated besides are only gains, supply voltage and known masses, as a user would.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from numpy.typing import NDArray

from bench.data import DATA
from gapless.arrays import Array
from gapless.identify import Fit, Objective, fit_admitted, solve_windows, typical
from gapless.logs import Log, read
from gapless.measure import windows
from gapless.twin import Friction, Twin, as_given
from gapless.worlds import replay


def go2() -> dict[str, float]:
    """Even blocks of 2 s to odd ones, and the first half to the faster second; root mean square over samples and joints."""
    log = read(DATA / "go2_inair/go2_inair.npz", mapping="go2_inair")
    twin = as_given(DATA / "go2_inair/model/go2_fixed_base.xml", log)
    clock = log["q"].time - log["q"].time[0]
    out: dict[str, float] = {}
    for name, train in (("go2", (clock // 2).astype(int) % 2 == 0), ("go2_faster", clock < clock[-1] / 2)):
        found = fit_admitted(twin, [_only(log, train)], print)
        result = replay(found.twin, log, np.stack([found.twin.space.nominal, found.values]))
        errors = [(result.command - result.measured["q"])[0], *result.error("q")[:, 0]]
        command, nominal, fitted = (float(np.degrees(np.sqrt((e[~train] ** 2).mean()))) for e in errors)
        out |= {f"{name}_command": command, f"{name}_published": nominal, name: fitted, f"{name}_s": found.seconds}
    return out


def z1() -> dict[str, float]:
    """Even blocks of 2 s to odd ones; root mean square over samples and the arm's six joints, free-running.

    The gripper is given beside them: it closes against itself 0.12 rad before the end of the model's range.
    """
    log = read(DATA / "z1/traj_0.pt", mapping="z1")
    twin = as_given(DATA / "z1/model/z1.xml", log)
    train = ((log["q"].time - log["q"].time[0]) // 2).astype(int) % 2 == 0
    found = fit_admitted(twin, [_only(log, train)], print)
    result = replay(found.twin, log, np.stack([found.twin.space.nominal, found.values]))
    errors = [(result.command - result.measured["q"])[0], *result.error("q")[:, 0]]
    by_joint = [np.degrees(np.sqrt((e[~train] ** 2).mean(axis=0))) for e in errors]
    out: dict[str, float] = {}
    for name, each in zip(("_command", "_published", ""), by_joint, strict=True):
        out |= {f"z1{name}": float(np.sqrt((each[:6] ** 2).mean())), f"z1_gripper{name}": float(each[6])}
    return out | {"z1_s": found.seconds}


def acromonk() -> dict[str, float]:
    """Swings under one controller to those under the other, both ways, windows of 0.5 s; elbow and passive shoulder.

    Torque is as measured. Of swings that begin and end with both hooks on a bar, only what lies between is used.
    `..._held` is the last state held. The IMU's zero differs by 3 deg between logs: `..._zeroed` as for the double pendulum.
    """
    logs = [read(f, mapping="acromonk") for f in sorted((DATA / "acromonk/logs").glob("Z*.csv.gz"))]
    between = ("BF_tvlqr_1x.csv.gz@0.2:2", "FB_pd_1x_.csv.gz@0.25:3")
    logs += [read(f"{DATA}/acromonk/logs/{name}", mapping="acromonk") for name in between]
    twin = as_given(DATA / "acromonk/model/acromonk.xml", logs[0])
    errors: dict[str, list[Array]] = {"held": [], "published": [], "": [], "zeroed": []}
    seconds = 0.0
    for kind in ("_pd_", "_tvlqr_"):
        found = fit_admitted(twin, [log for log in logs if kind not in log.name], print)
        seconds += found.seconds
        for log in (log for log in logs if kind in log.name):
            result = replay(found.twin, log, np.stack([found.twin.space.nominal, found.values]), window=0.5)
            seen = np.isfinite(result.time)
            errors["held"].append((result.measured["q"][:, :1] - result.measured["q"])[seen])
            for name, error in zip(("published", ""), result.error("q"), strict=True):
                errors[name].append(error[seen])
            size = typical(windows(found.twin, [log]), found.values)
            errors["zeroed"] += [e.reshape(-1, 2) for e in _zeroed(found, log, size)]
    out: dict[str, float] = {}
    for name, parts in errors.items():
        size = np.degrees(np.sqrt((np.concatenate(parts) ** 2).mean(axis=0)))
        out |= {f"acromonk_{j}{'_' if name else ''}{name}": float(e) for j, e in zip(("elbow", "shoulder"), size, strict=True)}
    return out | {"acromonk_s": seconds}


def _only(log: Log, rows: NDArray[np.bool_]) -> Log:
    """A log in which the positions of other rows were not measured."""
    q = np.where(rows[:, None], log["q"].values, np.nan)
    return Log.from_arrays(log["q"].columns, log["q"].time, {"q": q, "q_cmd": log["q_cmd"].values}, meta=dict(log.meta))


def so101() -> dict[str, float]:
    """Fitted to the training motions, judged on 60 s of the validation motions; by joint, then mean of the five arm joints."""
    split = json.loads((DATA / "so101/split.json").read_text())
    twin = Twin.load(DATA / "so101/model/so101.xml", add=[Friction(full=True)])
    found = fit_admitted(twin, [read(DATA / "so101/motions" / m, mapping="so101") for m in split["train"]], print)
    errors: list[list[Array]] = [[], [], []]
    tips: list[Array] = []
    for motion in split["validation"]:
        result = replay(found.twin, read(DATA / "so101/motions" / motion, mapping="so101"), found.values, end=60.0)
        errors[0].append((result.command - result.measured["q"])[0])
        errors[1].append(result.error("q")[0, 0])
        tips.append(_tip(found, result.measured["q"][0]))
    off = np.concatenate(tips) > 0.005  # m above the table: not in contact
    errors[2] = [np.concatenate(errors[1])[off]]
    command, fitted, clear = (float(np.degrees(np.sqrt((np.concatenate(e) ** 2).mean(axis=0)))[:5].mean()) for e in errors)
    return {"so101_command": command, "so101": fitted, "so101_clear": clear, "so101_s": found.seconds}


def _tip(found: Fit, q: Array) -> Array:
    """Height of the point that touches above the table that was found [m]; far where none was."""
    import mujoco

    if "table.height" not in found.twin.space.names:
        return np.full(len(q), np.inf)
    model = found.twin.compile(found.values)
    data = mujoco.MjData(model)
    out = np.empty(len(q))
    for k in range(len(q)):
        data.qpos[[d.qpos for d in found.twin.drives]] = q[k]
        mujoco.mj_kinematics(model, data)
        out[k] = data.geom("gapless_tip").xpos[2] - data.geom("gapless_table").xpos[2]
    return out


def pendulum() -> dict[str, float]:
    """Design C.1, even logs to odd ones, windows of 0.5 s.

    Encoders of this rig are zeroed by hand before each log, and the zeros differ by degrees. `..._zeroed` has the zeros of each
    test log from its own windows of the other parity; everything else is from the even logs alone. `..._seen` is the same model
    fitted to the very windows it is judged by, with one zero for all logs: a figure below it cannot be had without their zeros.
    """
    files = sorted((DATA / "double_pendulum/design_C.1").glob("*.csv.gz"))
    logs = [read(f, mapping="double_pendulum") for f in files]
    twin = Twin.load(DATA / "double_pendulum/model/double_pendulum.xml", add=[Friction(full=True)])
    found = fit_admitted(twin, logs[0::2], print)

    def rms(errors: list[Array]) -> Array:
        return np.asarray(np.degrees(np.sqrt((np.concatenate([e.reshape(-1, 2) for e in errors]) ** 2).mean(axis=0))))

    test = windows(found.twin, logs[1::2])
    plain = [test.errors(v[None]) for v in (found.twin.space.nominal, found.values)]
    size, zeroed = typical(test, found.values), []
    cheat = Objective(test, found.belief.space, found.values, size)
    plain.append(test.errors(cheat.values(solve_windows(cheat)[None])))
    for log in logs[1::2]:
        zeroed += _zeroed(found, log, size)
    figures = zip(("published", "", "seen", "zeroed"), map(rms, (*([e] for e in plain), zeroed)), strict=True)
    out = {f"pendulum_q{j + 1}{'_' if n else ''}{n}": float(e[j]) for n, e in figures for j in (0, 1)}
    return out | {"pendulum_s": found.seconds}


def _zeroed(found: Fit, log: Log, size: Array) -> list[Array]:
    """Errors in windows of a log, with its encoder zeros from those of the other parity. size: of each joint's error."""
    out = []
    offsets = [found.twin.space.names.index(f"offset.encoder/{j}") for j in found.twin.joints]
    starts = windows(found.twin, [log]).replayers[0].starts
    for parity in (0, 1):
        own, other = (windows(found.twin, [log], starts=[starts[p::2]]) for p in (parity, 1 - parity))
        objective = Objective(own, found.twin.space.select("offset.encoder/*"), found.values, size)
        values = found.values.copy()
        values[offsets] = objective.values(solve_windows(objective)[None])[0][offsets]
        out.append(other.errors(values[None]))
    return out


def xl330() -> dict[str, float]:
    """Gains 100 and 800 to gain 200; mean absolute error [rad]."""
    logs = {kp: [read(f, mapping="xl330") for f in sorted((DATA / "xl330/logs").glob(f"kp{kp}_*"))] for kp in (100, 200, 800)}
    train = logs[100] + logs[800]
    twin = as_given(DATA / "xl330/model/xl330_bench.xml", train[0])
    found = fit_admitted(twin, train, print)
    errors, commands = [], []
    for log in logs[200]:
        result = replay(found.twin, log, found.values)
        on = log.at("enabled", result.starts[0] + result.time[0])[:, 0] > 0.5  # the servo is dropped in some logs
        errors.append(np.abs(result.error("q")[0, 0, :, 0]))
        commands.append(np.abs((result.command - result.measured["q"])[0, on, 0]))
    command, fitted = (float(np.concatenate(e).mean()) for e in (commands, errors))
    return {"xl330_command": command, "xl330": fitted, "xl330_s": found.seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", default="go2,so101,pendulum,xl330,z1,acromonk", help="which data sets, by comma")
    options = parser.parse_args()
    every = {"go2": go2, "so101": so101, "pendulum": pendulum, "xl330": xl330, "z1": z1, "acromonk": acromonk}
    result: dict[str, float] = {}
    for name in options.only.split(","):
        result |= every[name]()
    for name, value in result.items():
        print(f"{name:24} {value:.4f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
