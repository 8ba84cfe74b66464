"""How many of eighteen broken copies of good policies `gapless check` names, and what it finds in good ones.

python -m bench.check [--json] [--policies DIR] [--blind] [--fresh] [--own DIR ROBOT]

Golden frames are recorded in the robot's own model, as training would leave them; --blind leaves them out. The check was
developed on broken copies of three policies; --fresh takes two others, --own a policy trained here. The last line is
{"named": ..., "of": ..., "false": ...}.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gapless.check import PolicyCheck, check, frame_columns, upright, walk
from gapless.policy import Candidate, Contract, read_policy
from gapless.robots import RobotModel, load_robot
from gapless.rotations import up_of

DATA = Path(__file__).parents[2] / "shared" / "data" / "policies"
LEGS = "joints.names=['left_hip_*', 'left_knee*', 'left_ankle*', 'right_hip_*', 'right_knee*', 'right_ankle*']"
HOLOSOMA = (
    "observation.terms=['actions', 'base_ang_vel*0.25', 'command_ang_vel', 'command_lin_vel', 'cos_phase', 'dof_pos', "
    "'dof_vel*0.05', 'projected_gravity', 'sin_phase']",
    "joints.default_pos={'*': 0.0, '*_hip_pitch_joint': -0.312, '*_knee_joint': 0.669, '*_ankle_pitch_joint': -0.363}",
    "action.scale=0.25",
    "timing.control_dt=0.02",
)
KNOWN = (
    ("rl_sar_go2", "models/go2.xml", 1.0, ()),
    ("unitree_rl_lab_g1", "models/g1.xml", 0.5, ()),
    ("unitree_rl_mjlab_g1", "models/g1.xml", 0.5, ()),
)
FRESH = (
    ("unitree_rl_gym_g1", "models/g1.xml", 0.5, (LEGS,)),
    ("holosoma_g1", "models/g1.xml", 0.5, HOLOSOMA),
)
"""Folder, model, speed [m/s], and what the files do not say."""


@dataclass(frozen=True)
class Copy:
    """A broken copy: the names under which its defect may be found, and what is checked."""

    names: tuple[str, ...]
    candidate: Candidate


class Wrapped:
    """A network with something done to it."""

    def __init__(self, network: Any, before: Any = None, forget: bool = False):
        self._network, self._before, self._forget = network, before, forget

    def reset(self) -> None:
        self._network.reset()

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        if self._forget:
            self._network.reset()
        return self._network(observation if self._before is None else self._before(observation))


def copies(good: Candidate, robot: RobotModel, golden: tuple[np.ndarray, np.ndarray] | None) -> Iterator[tuple[str, Copy]]:
    """The eighteen of the list, those that this policy can have."""
    c = good.contract
    assert c is not None and c.joints.kp and c.joints.kd and c.joints.default_pos
    j, a, o, t = c.joints, c.action, c.observation, c.timing
    n, scale = len(j.names), np.broadcast_to(np.asarray(a.scale, float), len(a.joints))
    many = any(x.history > 1 for x in o.terms)

    def of(contract: Contract, *names: str, **changes: Any) -> Copy:
        return Copy(names, replace(good, contract=contract, golden=golden, **changes))

    def terms(kinds: tuple[str, ...], **changes: Any) -> Contract:
        made = tuple(
            replace(x, **{k: v(x) if callable(v) else v for k, v in changes.items()}) if x.kind in kinds else x for x in o.terms
        )
        return replace(c, observation=replace(o, terms=made))

    def times(values: Any, factor: float) -> tuple[float, ...]:
        return tuple((factor * np.asarray(values, float)).tolist())

    order = np.random.default_rng(0).permutation(n)
    swapped = tuple(sorted(j.names))
    yield "joint order", of(replace(c, joints=replace(j, names=swapped), action=replace(a, joints=swapped)), "joint order")
    yield (
        "sign",
        of(replace(c, action=replace(a, scale=tuple((scale * np.where(np.arange(len(scale)) == 0, -1, 1)).tolist()))), "sign"),
    )
    yield "gains x2", of(replace(c, joints=replace(j, kp=times(j.kp, 2), kd=times(j.kd, 2))), "gains")
    kp, kd = (tuple(g[i] for i in order) for g in (j.kp, j.kd))
    if kp != j.kp:
        yield "gains permuted", of(replace(c, joints=replace(j, kp=kp, kd=kd)), "gains order", "gains")
    yield "gains of 1 and 0", of(replace(c, joints=replace(j, kp=(1.0,) * n, kd=(0.0,) * n)), "gains")
    yield "action scale", of(replace(c, action=replace(a, scale=times(scale, 2))), "action scale")
    if many:
        flipped = {"oldest_first": "newest_first", "newest_first": "oldest_first"}[o.order]
        yield "history reversed", of(replace(c, observation=replace(o, order=flipped)), "history order")
        major = {"term": "frame", "frame": "term"}[o.major]
        yield "history by frame", of(replace(c, observation=replace(o, major=major)), "history layout")
    if golden is not None:
        yield "quaternion order", replace_golden(of(c, "quaternion order"), turned(c, golden))
    limb = robot.model.body(int(robot.model.jnt_bodyid[robot.drives[2].joint])).name
    yield "IMU frame", of(replace(c, conventions=replace(c.conventions, imu_frame=limb)), "IMU frame")
    yield "wrong period", of(replace(c, timing=replace(t, control_dt=2 * t.control_dt, sim_dt=None, decimation=None)), "period")
    if any(x.kind == "dq" and not np.allclose(x.scale, 1.0) for x in o.terms):
        yield "unscaled observation", of(terms(("dq",), scale=1.0), "observation scale")
    factor = np.degrees(1.0)
    yield (
        "degrees",
        of(
            terms(("gyro",), scale=lambda x: times(np.atleast_1d(x.scale), factor) if np.ndim(x.scale) else factor * x.scale),
            "degrees",
        ),
    )
    yield "lagged observation", of(terms(("q",), lag=2), "lagged observation")
    limits = tuple(0.25 * x.torque_limit for x in robot.joint_table)
    yield (
        "clipped torque",
        of(replace(c, joints=replace(j, effort_limit=tuple(limits[robot.joints.index(x)] for x in j.names))), "torque limit"),
    )
    pose = (0.0,) * n
    yield (
        "wrong default pose",
        of(replace(c, joints=replace(j, default_pos=pose), action=replace(a, offset=(0.0,) * len(a.joints))), "default pose"),
    )
    if golden is not None:
        yield "missing normaliser", of(replace(c, normalizer="baked"), "normaliser", policy=unscaled(good), normalizer=False)
    if c.recurrent is not None:
        yield "zeroed recurrent state", of(c, "recurrent state", policy=Wrapped(good.policy, forget=True))


def unscaled(good: Candidate) -> Any:
    """The network without a normaliser that it had: it is shown what the normaliser would have been shown, as it is."""
    return Wrapped(good.policy, before=lambda x: (x * 3.0 + 0.5).astype(np.float32))


def turned(contract: Contract, golden: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Golden observations whose gravity was made from a quaternion read x first, of a robot that faces along x."""
    observation = golden[0].copy()
    for age in range(max(t.history for t in contract.observation.terms)):
        for term in contract.observation.terms:
            if term.kind == "gravity" and term.name in (columns := frame_columns(contract, age)):
                for row in observation:
                    quat = np.roll(upright(row[columns[term.name]].astype(float)), -1)
                    row[columns[term.name]] = contract.conventions.gravity[2] * up_of(quat)
    return observation, golden[1]


def replace_golden(copy: Copy, golden: tuple[np.ndarray, np.ndarray]) -> Copy:
    """Golden frames of a runtime that was wrong; its network answers them."""
    policy = copy.candidate.policy
    assert policy is not None
    policy.reset()  # frames in a row, which a memory remembers
    answered = np.concatenate([np.asarray(policy(row[None])) for row in golden[0]])
    policy.reset()
    return Copy(copy.names, replace(copy.candidate, golden=(golden[0], answered)))


def frames(good: Candidate, robot: RobotModel, command: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Golden frames of a walk, in a row from its start."""
    assert good.contract is not None
    _, trace = walk(good.policy, good.contract, robot, command, 2.0)  # type: ignore[arg-type]
    return trace.observation.astype(np.float32), trace.action.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--own", nargs=2, metavar=("DIR", "ROBOT"))
    parser.add_argument("--policies", type=Path, default=DATA)
    given = parser.parse_args()
    named, of, false = 0, 0, 0
    shown: list[dict[str, Any]] = []
    chosen = ((given.own[0], given.own[1], 0.5, ()),) if given.own else FRESH if given.fresh else KNOWN
    for folder, model, speed, settings in chosen:
        robot = load_robot(model if given.own else given.policies / model)
        good = read_policy(given.policies / folder, robot, None, settings)
        command = (speed, 0.0, 0.0)
        golden = None if given.blind else frames(good, robot, command)
        result = check(replace(good, golden=golden), robot, command=command)
        false += result.outcome != "pass"
        rows = [("good", (), result, 0.0)]
        for name, copy in copies(good, robot, golden):
            start = time.perf_counter()
            result = check(copy.candidate, robot, command=command)
            rows.append((name, copy.names, result, time.perf_counter() - start))
            of += 1
            named += result.finding in copy.names
        for name, names, result, seconds in rows:
            shown.append(_row(folder, name, names, result, seconds))
            if not given.json:
                r = shown[-1]
                mark = "ok" if r["right"] else "NO"
                print(f"{folder:20s} {name:24s} {mark} {r['found']:22s} {seconds:5.1f} s  {r['verdict'][:120]}", flush=True)
    print(json.dumps(({"cases": shown} if given.json else {}) | {"named": named, "of": of, "false": false}))


def _row(folder: str, name: str, names: tuple[str, ...], result: PolicyCheck, seconds: float) -> dict[str, Any]:
    right = result.finding in names if names else result.outcome == "pass"
    found = result.finding or result.outcome
    return {
        "policy": folder,
        "case": name,
        "right": right,
        "found": found,
        "seconds": seconds,
        "verdict": result.verdict().text,
    }


if __name__ == "__main__":
    main()
