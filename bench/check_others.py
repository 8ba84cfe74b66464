"""Mistakes beyond the eighteen of bench.check: which `gapless check` names, notices or misses.

python -m bench.check_others [--json] [--policies DIR] [--blind] [--fresh] [--own DIR ROBOT] [--only NAME ...]

Named is a finding under one of a mistake's names, noticed any other failure or warning that the good policy does not have,
missed the rest. The last line is
{"named": ..., "noticed": ..., "missed": ..., "false": ...}.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bench.check import DATA, FRESH, KNOWN, Copy, Wrapped, frames, replace_golden
from gapless.check import PolicyCheck, check, frame_columns
from gapless.policy import CLOCKS, Candidate, Contract, Policy, Term, read_policy
from gapless.robots import RobotModel, load_robot

Golden = tuple[np.ndarray, np.ndarray]
UPSIDE = ("IMU frame", "gravity sign", "sign", "quaternion order")


def others(good: Candidate, robot: RobotModel, golden: Golden | None) -> Iterator[tuple[str, Copy]]:
    """Broken copies, those that this policy can have."""
    c = good.contract
    assert c is not None and c.joints.kp and c.joints.kd and c.joints.default_pos and good.policy is not None
    j, a, o, t = c.joints, c.action, c.observation, c.timing
    kinds = {x.kind: x for x in o.terms}

    def of(contract: Contract, *names: str, **changes: Any) -> Copy:
        return Copy(names, replace(good, contract=contract, golden=golden, **changes))

    def terms(chosen: tuple[str, ...], **changes: Any) -> Contract:
        def of_kind(x: Term) -> Term:
            return replace(x, **{k: v(x) if callable(v) else v for k, v in changes.items()}) if x.kind in chosen else x

        return replace(c, observation=replace(o, terms=tuple(map(of_kind, o.terms))))

    def scaled(*factors: float) -> Any:
        return lambda x: tuple((np.broadcast_to(np.asarray(x.scale, float), x.dim) * np.asarray(factors)).tolist())

    def gains(kp: float = 1.0, kd: float = 1.0) -> Contract:
        return replace(c, joints=replace(j, kp=_times(j.kp, kp), kd=_times(j.kd, kd)))

    def swapped(names: tuple[str, ...], x: int, y: int) -> tuple[str, ...]:
        out = list(names)
        out[x], out[y] = out[y], out[x]
        return tuple(out)

    for what, (x, y) in {"two joints of a leg": _pair(j.names, False), "two knees": _pair(j.names, True)}.items():
        names = swapped(j.names, x, y)
        yield f"swapped: {what}", of(replace(c, joints=replace(j, names=names), action=replace(a, joints=names)), "joint order")
    yield "kd x10", of(gains(kd=10), "gains")
    yield "kd /10", of(gains(kd=0.1), "gains")
    yield "kp x3", of(gains(kp=3), "gains")
    yield "kp /3", of(gains(kp=1 / 3), "gains")
    if "command" in kinds:
        yield "command scale", of(terms(("command",), scale=scaled(0.5)), "observation scale")
        yield "commands swapped", replace_commands(of(c, "command order"), c)
    yield "gyro's roll in degrees", of(terms(("gyro",), scale=scaled(np.degrees(1), 1, 1)), "degrees", "observation scale")
    up = replace(c, conventions=replace(c.conventions, gravity=tuple(-g for g in c.conventions.gravity)))
    yield "gravity sign", of(up, "gravity sign")
    yield "IMU upside down", of(terms(("gyro", "gravity"), scale=scaled(1, -1, -1)), *UPSIDE)
    yield "IMU back to front", of(terms(("gyro", "gravity"), scale=scaled(-1, -1, 1)), *UPSIDE)
    offset = np.broadcast_to(np.asarray(a.offset, float), len(a.joints))
    yield "offset added twice", of(replace(c, action=replace(a, offset=tuple((2 * offset).tolist()))), "default pose")
    yield "offset forgotten", of(replace(c, action=replace(a, offset=0.0)), "default pose")
    yield "positions from zero", of(terms(("q",), absolute=True), "default pose", "joint limits", "observation scale")
    yield "action clip", of(replace(c, action=replace(a, clip=(-0.3, 0.3))), "action clip")
    if any(x.kind in CLOCKS for x in o.terms):
        slow = terms(CLOCKS_OF, frequency=lambda x: x.frequency / 1.5)
        yield "clock of another period", of(slow, "clock")
        yield "clock that starts elsewhere", of(terms(CLOCKS_OF, phases=lambda x: tuple(p + 1.5 for p in x.phases)), "clock")
    if "last_action" in kinds:
        yield "last action processed", of(replace(c, observation=replace(o, last_action="processed")), "last action")
        yield "last action scaled", of(terms(("last_action",), scale=scaled(0.25)), "last action", "observation scale")
    yield "action scale of knees", of(replace(c, action=replace(a, scale=_knees(a.scale, a.joints))), "action scale")
    yield (
        "period x1.5",
        of(replace(c, timing=replace(t, control_dt=1.5 * t.control_dt, sim_dt=None, decimation=None)), "period"),
    )
    yield "speeds negated", of(terms(("dq",), scale=scaled(-1)), "sign")
    yield "all late by one", of(terms(("q", "dq", "gyro", "gravity"), lag=1), "lagged observation")
    if golden is not None:
        if any(x.history > 1 for x in o.terms):
            yield "history padded with zeros", _padded(of(c, "history", "history layout"), c, golden)
        yield "weights of 16 bits", of(c, "precision", policy=_rounded(good))
        spread = golden[0].std(axis=0) + 1e-3
        twice = Wrapped(good.policy, before=lambda x: ((x - golden[0].mean(axis=0)) / spread).astype(np.float32))
        yield "normaliser twice", of(replace(c, normalizer="baked"), "normaliser", policy=twice, normalizer=True)
        epsilon = Wrapped(good.policy, before=lambda x: (x * spread / (spread + 0.05)).astype(np.float32))
        yield "normaliser's epsilon", of(replace(c, normalizer="baked"), "normaliser", policy=epsilon, normalizer=True)


CLOCKS_OF = tuple(CLOCKS)


def _times(values: Any, factor: float) -> tuple[float, ...]:
    return tuple((factor * np.asarray(values, float)).tolist())


def _pair(names: tuple[str, ...], knees: bool) -> tuple[int, int]:
    """Two joints of one leg, or the knees of two."""
    if knees:
        found = [i for i, n in enumerate(names) if "knee" in n or "calf" in n]
        return found[0], found[1]
    first = next(n for n in names if "knee" in n or "calf" in n)
    side = first.split("_")[0]
    hip = next(i for i, n in enumerate(names) if n.startswith(side) and ("hip_pitch" in n or "thigh" in n))
    return names.index(first), hip


def _knees(scale: Any, joints: tuple[str, ...]) -> tuple[float, ...]:
    wide = np.broadcast_to(np.asarray(scale, float), len(joints)).copy()
    wide[[i for i, n in enumerate(joints) if "knee" in n or "calf" in n]] *= 2
    return tuple(wide.tolist())


def replace_commands(copy: Copy, contract: Contract) -> Copy:
    """The command's columns in another order: turn, forward, sideways."""
    order = tuple(contract.commands)[-1:] + tuple(contract.commands)[:-1]
    made = tuple(
        replace(t, commands=order) if t.kind == "command" and t.dim == len(order) else t for t in contract.observation.terms
    )
    changed = replace(contract, observation=replace(contract.observation, terms=made))
    return Copy(copy.names, replace(copy.candidate, contract=changed))


def _padded(copy: Copy, contract: Contract, golden: Golden) -> Copy:
    """Golden frames of a runtime whose history is one frame too short and filled with zeros."""
    deepest = max(t.history for t in contract.observation.terms)
    observation = golden[0].copy()
    for columns in frame_columns(contract, deepest - 1).values():
        if deepest > 1:
            observation[:, columns] = 0.0
    return replace_golden(copy, (observation, golden[1]))


def _rounded(good: Candidate) -> Policy:
    """The network with weights of half precision."""
    assert good.contract is not None
    proto = onnx.load_model_from_string(good.model)
    for tensor in proto.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            half = onnx.numpy_helper.to_array(tensor).astype(np.float16).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(half, tensor.name))
    return Policy(good.contract, proto.SerializeToString())


def _seen(result: PolicyCheck) -> set[str]:
    return {c.name for c in result.checks if c.status in ("fail", "warn")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--own", nargs=2, metavar=("DIR", "ROBOT"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--policies", type=Path, default=DATA)
    given = parser.parse_args()
    counts, rows = {"named": 0, "noticed": 0, "missed": 0, "false": 0}, []
    for folder, model, speed, settings in (
        ((given.own[0], given.own[1], 0.5, ()),) if given.own else FRESH if given.fresh else KNOWN
    ):
        robot = load_robot(model if given.own else given.policies / model)
        good = read_policy(given.policies / folder, robot, None, settings)
        command = (speed, 0.0, 0.0)
        golden = None if given.blind else frames(good, robot, command)
        result = check(replace(good, golden=golden), robot, command=command)
        counts["false"] += result.outcome != "pass"
        usual = _seen(result)
        for name, copy in others(good, robot, golden):
            if given.only and not any(word in name for word in given.only):
                continue
            start = time.process_time()
            result = check(copy.candidate, robot, command=command)
            seconds = time.process_time() - start
            new = _seen(result) - usual
            right = result.finding in copy.names or (result.outcome == "pass" and bool(new & set(copy.names)))
            mark = "named" if right else "noticed" if new or result.outcome != "pass" else "missed"
            counts[mark] += 1
            found = result.finding or "/".join(sorted(new)) or result.outcome
            rows.append({"policy": folder, "case": name, "mark": mark, "found": found, "seconds": seconds})
            if not given.json:
                print(
                    f"{folder:20s} {name:28s} {mark:8s} {found:22s} {seconds:5.1f} s  {result.verdict().text[:150]}", flush=True
                )
    print(json.dumps(({"cases": rows} if given.json else {}) | counts))


if __name__ == "__main__":
    main()
