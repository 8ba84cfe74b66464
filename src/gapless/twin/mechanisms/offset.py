"""Offset: encoders whose zero is not where the model thinks, and an IMU that is not mounted square."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.robots import Drive, base_joint, driven, drives, is_dc_motor, is_position_servo
from gapless.twin.mechanism import DRIVE, ON_FEET, Bound, Fields, Mechanism, Quantity, Values, keep

KEPT = "gapless_encoder_zero"  # the numerics, one a joint, with the encoder zeros of a saved twin [rad]
SEAT = "gapless_imu_seat"  # the numeric with how its IMU is tilted about x and y [rad]
ENCODER = Quantity(
    "offset.encoder",
    "rad",
    remedy="calibrate the encoder zeros, or subtract {value} from the readings",
    rungs=(DRIVE,),
    shows="holding several poses against gravity shows it",
    changes="the robot was homed anew, or a coupling or an encoder slipped",
    ranges={"wide": ("", -0.02, 0.02)},  # Asimov's and mjlab's
)
IMU = tuple(
    Quantity(
        f"offset.imu_{axis}",
        "rad",
        "offset.imu",
        "level the IMU, or subtract its tilt from the readings",
        shown_by=ON_FEET,
        standing="+ seat of the IMU",
        changes="the IMU sits differently, or the part that it is mounted on was bent or refitted",
        ranges={"wide": ("", -0.03, 0.03)},  # Tan et al. 2018: 0.05
        mirrored=axis == "roll",
    )
    for axis in ("roll", "pitch")
)


@dataclass(frozen=True)
class Offset(Mechanism):
    """Encoder zero of each joint (reading minus truth) and tilt of the IMU against the base, [rad].

    The drive's own loop uses the same encoder: a servo told to go to q stops at q - offset and reports q.
    """

    quantities = (ENCODER, *IMU)
    joints: str = "*"

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        model = spec.copy().compile()
        for d in drives(model):  # a saved twin has the zeros in its servos, for programs that know no encoders
            if (zero := kept_zero(model, d.name)) and model.actuator_biasprm[d.actuator, 0]:
                shift(spec.actuators[d.actuator], model, d, -zero)

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = driven(model, self.joints)
        columns = [drives(model).index(d) for d in motors]
        parameters = [ENCODER.amount(d.name, kept_zero(model, d.name), 0.02, 0.002, -0.5, 0.5) for d in motors]
        floating = base_joint(model) is not None
        if floating:
            seat = _kept(model, SEAT, 2)
            parameters += [tilt.amount("", at, 0.02, 0.002, -0.5, 0.5) for tilt, at in zip(IMU, seat, strict=True)]

        def apply(fields: Fields, values: Values) -> None:
            fields["path.offset_q"][:, columns] = values["offset.encoder"]
            if floating:
                fields["path.imu_roll"][:] = values["offset.imu_roll"][:, 0]
                fields["path.imu_pitch"][:] = values["offset.imu_pitch"][:, 0]

        return Bound(parameters, apply)


def kept_zero(model: mujoco.MjModel, joint: str) -> float:
    """The encoder zero that a saved twin has for a joint; none in other models [rad]."""
    return _kept(model, f"{KEPT}/{joint}", 1)[0]


def _kept(model: mujoco.MjModel, name: str, count: int) -> list[float]:
    """Numbers that a saved twin has under a name; zeros in other models."""
    place = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    numbers = model.numeric(place).data.tolist() if place >= 0 else []
    return numbers if len(numbers) == count and np.isfinite(numbers).all() else [0.0] * count


def keep_zero(spec: mujoco.MjSpec, joint: str, zero: float) -> None:
    """Put it into a spec."""
    if zero or spec.numeric(f"{KEPT}/{joint}") is not None:
        keep(spec, f"{KEPT}/{joint}", [zero])


def keep_seat(spec: mujoco.MjSpec, roll: float, pitch: float) -> None:
    """Put the tilt of the IMU into a spec."""
    if roll or pitch or spec.numeric(SEAT) is not None:
        keep(spec, SEAT, [roll, pitch])


def shift(actuator: mujoco.MjsActuator, model: mujoco.MjModel, drive: Drive, zero: float) -> bool:
    """Make a servo stop short of its target by an encoder zero [rad]; whether MJCF has a place for that."""
    if not is_position_servo(model, drive.actuator) or is_dc_motor(model, drive.actuator):
        return False
    bias = np.array(actuator.biasprm)
    bias[0] -= model.actuator_gainprm[drive.actuator, 0] * zero
    actuator.biasprm = bias
    return True
