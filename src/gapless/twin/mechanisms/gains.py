"""Gains: the stiffness and damping of the drive's own position or velocity loop."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from gapless.errors import unknown
from gapless.robots import ONE_AXIS, Drive, driven, drives, fits, is_dc_motor, is_position_servo, is_velocity_servo
from gapless.twin.mechanism import DRIVE, STANDING_DRIVE, Bound, Fields, Mechanism, Quantity, Values, keep

KP, KD = 4, 6  # places of the controller's gains in a DC motor's gainprm
STATED = "gapless_stated_gains"  # the numerics, one a joint, with the gains that logs state of a drive whose own were fitted
STIFFNESS = Quantity(
    "gains.kp",
    "N m/rad",
    remedy="set kp to {value} ({ratio} the model's {nominal}), or find out what the firmware's unit is",
    separated={"motor.strength": "command jumps so large that the torque limit bites, or log motor torque"},
    stands_for=("motor.strength",),
    far=(-9.0, -6.0),  # -9 is a gain that is 40 times too high in the model
    rungs=(DRIVE,),
    standing=STANDING_DRIVE,
    shows="holding poses against a known weight shows it",
    changes="a gain or its unit was set differently in the firmware, or the supply voltage or the temperature changed",
    ranges={"wide": ("x", 0.8, 1.25)},  # Peng et al. 2018, less
    exported="kp",
)
DAMPING = Quantity(
    "gains.kd",
    "N m s/rad",
    remedy="set kd to {value} ({ratio} the model's {nominal})",
    separated={
        "friction.viscous": "log motor torque, or move so fast that the torque limit bites",
        "latency.action": "move faster: a chirp up to 6 Hz",
    },
    far=(-6.0, 6.0),
    rungs=(DRIVE,),
    standing=STANDING_DRIVE,
    shows="fast free motion shows it",
    changes="a gain was set differently in the firmware, or viscous friction changed, which looks the same",
    ranges={"wide": ("x", 0.8, 1.25)},
    exported="kd",
)


@dataclass(frozen=True)
class Gains(Mechanism):
    """Proportional and derivative gain of each servo [N m/rad, N m s/rad].

    A model that takes torque but whose robot closes a position loop in the drive needs the drive's gains stated:
    `Gains(kp={"*": 20.0}, kd={"*": 1.5})` turns its torque actuators into servos. Firmware counts become SI by `unit`: a
    Feetech servo at P = 16 is `Gains(kp={"*": 16}, unit=1.11)` where one count is 1.11 N m/rad.
    """

    quantities = (STIFFNESS, DAMPING)
    joints: str = "*"
    kp: Mapping[str, float] = field(default_factory=dict)
    """Joint pattern to proportional gain, in firmware units."""
    kd: Mapping[str, float] = field(default_factory=dict)
    unit: float = 1.0
    """What one firmware unit is in N m/rad (and N m s/rad)."""
    quantum: float = 0.0
    """The step to which the firmware rounds a position command [rad]."""
    passive: tuple[str, ...] = ()
    """Joints that no motor acts on and that were measured: an actuator without gain makes them joints of the twin."""

    commanded: Mapping[str, str] = field(default_factory=dict)
    """Joints that are commanded otherwise than the model says: by "tau" or "dq"."""

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        for name in self.passive:
            if spec.joint(name) is None:
                raise unknown("joint", name, [joint.name for joint in spec.joints])
            spec.add_actuator(name=f"passive_{name}", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT).gainprm = np.zeros(10)
        model = spec.copy().compile()
        for d in (d for d in drives(model) if d.name in self.commanded and is_position_servo(model, d.actuator)):
            if self.commanded[d.name] == "tau":
                spec.actuators[d.actuator].set_to_motor()
            else:
                spec.actuators[d.actuator].set_to_velocity(kv=_read(model, d)[1] or _read(model, d)[0])
            spec.actuators[d.actuator].ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
        if not self.kp and not self.kd:
            return
        model = spec.copy().compile()
        if not drives(model):
            model = self._drive(spec, model)
        names = [d.name for d in drives(model)]
        for given in (self.kp, self.kd):
            for pattern in given:
                if not any(fits(n, pattern) for n in names):
                    raise unknown("joint", pattern, names)
        for d in (d for d in driven(model, self.joints) if d.name not in self.passive):
            kp, kd = _lookup(self.kp, d.name), _lookup(self.kd, d.name)
            if kp is None and kd is None:
                continue
            now_kp, now_kd = _read(model, d) if is_position_servo(model, d.actuator) else (0.0, 0.0)
            _make_servo(
                spec.actuators[d.actuator],
                model,
                d,
                now_kp if kp is None else kp * self.unit,
                now_kd if kd is None else kd * self.unit,
            )

    def _drive(self, spec: mujoco.MjSpec, model: mujoco.MjModel) -> mujoco.MjModel:
        """Give a model without any actuators (a URDF) a servo on each joint that has a gain."""
        for j in range(model.njnt):
            name = model.joint(j).name
            if int(model.jnt_type[j]) in ONE_AXIS and fits(name, self.joints) and _lookup(self.kp, name) is not None:
                servo = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
                servo.set_to_position(kp=1.0, kv=0.0)
        return spec.copy().compile()

    def bind(self, model: mujoco.MjModel) -> Bound:
        position = [d for d in driven(model, self.joints) if is_position_servo(model, d.actuator)]
        velocity = [d for d in driven(model, self.joints) if is_velocity_servo(model, d.actuator)]
        velocity = [d for d in velocity if model.actuator_biasprm[d.actuator, 1] == 0]  # not those that integrate
        gains = [_read(model, d) for d in position]
        parameters = [STIFFNESS.factor(d.name, kp, 1.5, 0.05, span=300.0) for d, (kp, _) in zip(position, gains, strict=True)]
        kds = {d.name: (kd, kp) for d, (kp, kd) in zip(position, gains, strict=True)}
        kds |= {d.name: (-model.actuator_biasprm[d.actuator, 2], 0.0) for d in velocity}
        for name, (kd, kp) in kds.items():
            parameters.append(DAMPING.some(name, kd, 1.5, 0.05, 300.0, (0.05 * kp, 0.002 * kp, kp)))
        dc = [i for i, d in enumerate(position) if is_dc_motor(model, d.actuator)]
        affine = [i for i in range(len(position)) if i not in dc]
        nominal = np.array([gains[i][0] for i in affine])
        act = np.array([d.actuator for d in position], dtype=int)
        speed = [d.actuator for d in velocity]
        joints = [i for i, d in enumerate(drives(model)) if d in position]

        def apply(fields: Fields, values: Values) -> None:
            kd = values["gains.kd"] if kds else np.zeros((fields.n, 0))
            if affine:
                kp = values["gains.kp"][:, affine]
                fields["actuator_gainprm"][:, act[affine], 0] = kp
                fields["actuator_biasprm"][:, act[affine], 1] *= kp / nominal
                fields["actuator_biasprm"][:, act[affine], 2] = -kd[:, affine]
            if dc:
                fields["actuator_gainprm"][:, act[dc], KP] = values["gains.kp"][:, dc]
                fields["actuator_gainprm"][:, act[dc], KD] = kd[:, dc]
            if speed:
                fields["actuator_gainprm"][:, speed, 0] = kd[:, len(position) :]
                fields["actuator_biasprm"][:, speed, 2] = -kd[:, len(position) :]
            if self.quantum:
                fields["path.quantum_cmd"][:, joints] = self.quantum

        return Bound(parameters, apply)


def kept_gains(model: mujoco.MjModel) -> dict[str, tuple[float, float]]:
    """By joint the kp and kd that logs state where those of a fitted model hold: a log with twice as much means twice these."""
    names = [model.numeric(i).name for i in range(model.nnumeric)]
    kept = {name.partition("/")[2]: model.numeric(name).data for name in names if name.startswith(f"{STATED}/")}
    return {joint: (float(data[0]), float(data[1])) for joint, data in kept.items() if len(data) == 2}


def keep_gains(spec: mujoco.MjSpec, gains: Mapping[str, tuple[float, float]]) -> None:
    """Put them into a spec."""
    for joint, both in gains.items():
        keep(spec, f"{STATED}/{joint}", both)


def _lookup(given: Mapping[str, float], name: str) -> float | None:
    return next((float(v) for pattern, v in given.items() if fits(name, pattern)), None)


def _read(model: mujoco.MjModel, d: Drive) -> tuple[float, float]:
    """kp and kd of a position servo."""
    if is_dc_motor(model, d.actuator):
        return float(model.actuator_gainprm[d.actuator, KP]), float(model.actuator_gainprm[d.actuator, KD])
    return float(model.actuator_gainprm[d.actuator, 0]), float(-model.actuator_biasprm[d.actuator, 2])


def _make_servo(actuator: mujoco.MjsActuator, model: mujoco.MjModel, d: Drive, kp: float, kd: float) -> None:
    """Make an actuator a position servo; the range of a torque command becomes a torque limit."""
    a = d.actuator
    if not is_position_servo(model, a) and model.actuator_ctrllimited[a]:
        if d.signal == "tau":
            limit = model.actuator_ctrlrange[a] * model.actuator_gainprm[a, 0]
            if model.actuator_forcelimited[a]:
                limits = model.actuator_forcerange[a]
                limit = np.array([max(limit[0], limits[0]), min(limit[1], limits[1])])
            actuator.forcerange, actuator.forcelimited = limit, mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.ctrllimited, actuator.ctrlrange = mujoco.mjtLimited.mjLIMITED_FALSE, [0, 0]
    actuator.set_to_position(kp=kp, kv=kd)
