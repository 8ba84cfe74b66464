"""Which joint a motor's number stands for, on the robots whose SDK numbers are published and by a model's actuators else."""

from collections.abc import Sequence

_LEGS = tuple(f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf"))
_SHOULDER = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")


def _sides(*parts: str, first: str = "left", then: str = "right") -> tuple[str, ...]:
    return tuple(f"{side}_{part}" for side in (first, then) for part in parts)


_G1 = (
    *_sides("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"),
    *("waist_yaw", "waist_roll", "waist_pitch"),
    *_sides(*_SHOULDER, "wrist_roll", "wrist_pitch", "wrist_yaw"),
)
_H1_2 = (
    *_sides("hip_yaw", "hip_pitch", "hip_roll", "knee", "ankle_pitch", "ankle_roll"),
    "torso",
    *_sides(*_SHOULDER, "wrist_roll", "wrist_pitch", "wrist_yaw"),
)
_H1 = (
    *_sides("hip_roll", "hip_pitch", "knee", first="right", then="left"),
    *("torso", "left_hip_yaw", "right_hip_yaw", "", "left_ankle", "right_ankle"),
    *_sides(*_SHOULDER, first="right", then="left"),
)
UNITREE = {"quadrupeds": _LEGS, "G1": _G1, "H1-2": _H1_2, "H1": _H1}
"""Joints by motor number in Unitree's SDK, without the ending `_joint`; empty where no motor is."""


def joints_of_motors(numbers: Sequence[int], joints: Sequence[str]) -> tuple[list[str], str] | None:
    """The joints that motors drive, and why that is believed; None where nothing tells.

    Args:
        numbers: of the motors.
        joints: of the robot's model, in the order of its actuators.
    """
    plain = {j.removesuffix("_joint"): j for j in joints}
    found: dict[tuple[str, ...], str] = {}
    for robot, table in UNITREE.items():
        named = set(table) - {""}
        alike = named <= plain.keys() or plain.keys() <= named
        if alike and all(0 <= i < len(table) and table[i] in plain for i in numbers):
            found[tuple(plain[table[i]] for i in numbers)] = robot
    if len(found) == 1:
        names, robot = next(iter(found.items()))
        return list(names), f"counts motors, and the model has the joints of Unitree's {robot}: their SDK's order is taken"
    if all(0 <= i < len(joints) for i in numbers):
        return [joints[i] for i in numbers], "counts motors; the order of the model's actuators is taken for theirs"
    return None
