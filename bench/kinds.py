"""How well fits predict a kind of motion, or a gain, that they have never seen: each is left out in turn.

    python -m bench.kinds [--json] [--only so101,xl330] [--kept out/kinds.json]

SO-101 by kinds of motion (degrees, root mean square over the first 60 s by joint, mean of the five arm joints) and XL330 by
gain (rad, mean absolute error), each beside the command as prediction and the model as published. Finished lines are kept in
a file, by the state of the code, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.halves import code, so101, xl330
from gapless.arrays import Array
from gapless.identify import Fit, fit_admitted
from gapless.logs import Log
from gapless.worlds import replay

MOTIONS = {
    "still": "hold_under_gravity static_holding friction_gravity backlash_detection gripper_cycles hover_positions",
    "slow": "slow_precision staircase_motion ramp_motion trapezoidal_profile triangle_wave oscillation_low_freq",
    "fast": "fast_transitions step_response actuator_bandwidth prbs_excitation perturbation_test repetitive_motion",
    "sweep": "chirp_sweep frequency_sweep sinusoidal_sweep multisine",
    "single_joint": "single_joint_elbow single_joint_rotation single_joint_wrist_pitch single_joint_wrist_roll",
    "coupled": "coupled_joints dual_joint_elbow_wrist circular_motion diagonal_sweep wave_motion symmetric_motion",
    "workspace": "large_amplitude boundary_exploration center_workspace reaching_points end_effector custom_motion",
}
"""Motions of the SO-101 by what their names say of them."""
GAINS = ("kp100", "kp200", "kp800")
LINES = [*(f"so101 {kind}" for kind in MOTIONS), *(f"xl330 {gain}" for gain in GAINS)]
MOST = {"so101": 0.40, "xl330": 0.032}  # deg and rad: mean over what was left out
NAMES = ("command", "published", "fit")


def left_out(line: str) -> dict[str, float]:
    """Errors on the logs of a line, of the fit to all others and beside it."""
    robot, kind = line.split()
    twin, logs = so101() if robot == "so101" else xl330()
    names = [Path(log.name).name for log in logs]
    out = [name in MOTIONS[kind].split() if robot == "so101" else name.startswith(kind) for name in names]
    found = fit_admitted(twin, [log for log, o in zip(logs, out, strict=True) if not o], print)
    judge = _degrees if robot == "so101" else _radians
    return dict(zip(NAMES, judge(found, [log for log, o in zip(logs, out, strict=True) if o]), strict=True)) | {
        "seconds": found.seconds
    }


def _errors(found: Fit, log: Log, end: float | None = None) -> Array:
    """Of the command, of the model as published and of the fit, free-running. Shape: (3, samples, joints)."""
    result = replay(found.twin, log, np.stack([found.twin.space.nominal, found.values]), end=end)
    errors = np.stack([(result.command - result.measured["q"])[0], *result.error("q")[:, 0]])
    if "enabled" in log:  # a servo that is off follows no command
        errors[0, log.at("enabled", result.starts[0] + result.time[0])[:, 0] < 0.5] = np.nan
    return errors


def _degrees(found: Fit, logs: Sequence[Log]) -> list[float]:
    errors = np.concatenate([_errors(found, log, 60.0) for log in logs], axis=1)
    return np.degrees(np.sqrt((errors**2).mean(axis=1)))[:, :5].mean(axis=1).tolist()


def _radians(found: Fit, logs: Sequence[Log]) -> list[float]:
    errors = np.concatenate([_errors(found, log) for log in logs], axis=1)
    return np.nanmean(np.abs(errors), axis=(1, 2)).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", default="so101,xl330", help="which data sets, by comma")
    parser.add_argument("--kept", type=Path, default=Path("out/kinds.json"), help="file of finished lines")
    options = parser.parse_args()
    state, lines = code(), [line for line in LINES if line.split()[0] in options.only.split(",")]
    kept = json.loads(options.kept.read_text()) if options.kept.exists() else {}
    done: dict[str, dict[str, float]] = kept.setdefault(state, {})
    for line in lines:
        if line not in done:
            done[line] = left_out(line)
            options.kept.parent.mkdir(parents=True, exist_ok=True)
            options.kept.write_text(json.dumps(kept))
    result = {line: done[line] for line in lines}
    for robot in options.only.split(","):
        own = [done[line] for line in lines if line.split()[0] == robot]
        result[f"{robot} mean"] = {name: float(np.mean([each[name] for each in own])) for name in own[0]}
    for line, each in result.items():
        print(f"{line:20} " + "  ".join(f"{name} {value:.4g}" for name, value in each.items()))
    for robot in options.only.split(","):
        print(f"{robot}: mean {result[f'{robot} mean']['fit']:.3f}, at most {MOST[robot]}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
