"""Motor: how much torque really comes out: strength, limit, torque-speed line, supply voltage, winding heat."""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import Drive, driven, is_dc_motor, is_position_servo, torque_limit
from gapless.twin.mechanism import DRIVE, Bound, Fields, Mechanism, Motion, Quantity, Values
from gapless.twin.mechanisms.gains import KD, KP
from gapless.twin.space import Parameter

# Places in the parameter arrays of MuJoCo's `dcmotor` actuator.
R, K, VMAX = 0, 1, 7  # gainprm: winding resistance, motor constant, supply voltage
THERMAL_RESISTANCE = 2  # dynprm: K/W from winding to ambient
FLAT = 20.0  # times the fastest motion: a no-load speed so high that a tenth of it takes off hardly any torque
SUPPLY = 24.0  # V: stands for any supply where only the torque-speed line is known
LINE = "+ torque-speed line"
SUPPLIED = "the supply voltage or the temperature of the motors changed"
STRENGTH = Quantity(
    "motor.strength",
    remedy="scale the drive's torque by {value}: check the gain kp that is set in it, then its torque constant and voltage",
    scales=("motor.limit",),
    rungs=(DRIVE,),
    shows="a known extra mass or logged torque shows it",
    changes=SUPPLIED,
    ranges={"wide": ("x", 0.8, 1.2)},  # Tan et al. 2018
)
LIMIT = Quantity(
    "motor.limit",
    "N m",
    remedy="set the torque limit to {value} ({ratio} the model's {nominal}): check the drive's current limit",
    rungs=("+ torque limit", LINE),
    shows="it was never reached: a larger step shows it",
    changes="the drive's current limit was set differently, or it protected itself from heat",
    exported="limit",
)
NO_LOAD_SPEED = Quantity(
    "motor.no_load_speed",
    "rad/s",
    far=(-7.0, -9.0),
    remedy="set the no-load speed to {value}: check the supply voltage",
    rungs=(LINE,),
    structure=True,
    changes=SUPPLIED,
)
KT = Quantity(
    "motor.kt",
    "N m/A",
    remedy="set the torque constant to {value} ({ratio} the model's {nominal})",
    rungs=(DRIVE,),
    changes=SUPPLIED,
)
RESISTANCE = Quantity(
    "motor.resistance",
    "Ohm",
    remedy="set the winding's resistance to {value} ({ratio} the model's {nominal})",
    rungs=(DRIVE,),
    changes=SUPPLIED,
)
VOLTAGE = Quantity("motor.voltage", "V", remedy="set the supply voltage to {value}; log it, since it sags under load")
HEATING = Quantity("motor.heating", "K/W")


@dataclass(frozen=True)
class DC:
    """An electric motor as its data sheet gives it, at the joint (behind the gear)."""

    kt: float
    """Torque constant [N m/A], also the back-EMF constant [V s/rad]."""
    resistance: float
    """Of the winding [Ohm]."""
    voltage: float
    """Of the supply [V]."""
    thermal_resistance: float = 0.0
    """Winding to ambient [K/W]; 0 leaves heating out."""
    thermal_capacity: float = 0.0
    """Of the winding [J/K]."""
    ambient: float = 25.0
    """[deg C]"""
    voltage_control: bool = False
    """Whether the firmware's gains set the share of the supply voltage (hobby servos: `gains.kp` is in duty/rad, and back-EMF
    damps the joint) instead of the torque (drives with a current loop)."""


@dataclass(frozen=True)
class Motor(Mechanism):
    """Torque that a drive delivers.

    `Motor()`: strength (1 = as modelled) and torque limit. `Motor(no_load_speed=21.0)` adds the torque-speed line: full
    torque at rest, none at the no-load speed [rad/s]. `Motor(dc=DC(...))` has torque constant, winding resistance, supply
    voltage and heating instead; its stall torque is kt V / R. The last two need position servos.
    """

    quantities = (STRENGTH, LIMIT, NO_LOAD_SPEED, KT, RESISTANCE, VOLTAGE, HEATING)
    joints: str = "*"
    no_load_speed: float | None = None
    dc: DC | None = None

    @classmethod
    def suspected(cls, model: mujoco.MjModel, motion: Motion) -> "Motor":
        """A torque-speed line that the fastest motion reaches half-way."""
        return cls(no_load_speed=2 * float(np.abs(motion.dq).max()))

    @classmethod
    def rival(cls, model: mujoco.MjModel, motion: Motion) -> "Motor":
        """A line so steep that no motion feels it."""
        return cls(no_load_speed=FLAT * float(np.abs(motion.dq).max()))

    def install(self, spec: mujoco.MjSpec, home: Mapping[str, float]) -> None:
        if self.no_load_speed is None and self.dc is None:
            return
        model = spec.copy().compile()
        for d in driven(model, self.joints):
            if not is_position_servo(model, d.actuator) or is_dc_motor(model, d.actuator):
                raise BadInput(f"a torque-speed line needs a position servo on {d.name}; state its gains with Gains(kp, kd)")
            limit = _limit(model, d)
            if self.dc is None and not limit:
                raise BadInput(f"a torque-speed line needs a torque limit on {d.name}: give its actuator a forcerange")
            _make_dc_motor(spec.actuators[d.actuator], model, d, self.dc, limit, self.no_load_speed or 0.0)

    def bind(self, model: mujoco.MjModel) -> Bound:
        motors = [d for d in driven(model, self.joints) if not d.passive]
        act = np.array([d.actuator for d in motors], dtype=int)
        limited = [i for i, d in enumerate(motors) if _limit(model, d)]
        parameters = [STRENGTH.factor(d.name, 1.0, 1.2, 0.03, span=5.0) for d in motors]
        parameters += [LIMIT.factor(motors[i].name, _limit(model, motors[i]), 1.3, 0.05, span=5.0) for i in limited]
        if self.dc:
            parameters += self._dc_parameters(self.dc, motors)
        elif self.no_load_speed:
            parameters += [NO_LOAD_SPEED.factor(d.name, self.no_load_speed, 1.3, 0.05, 30.0) for d in motors]
        nominal = np.array([_limit(model, motors[i]) for i in limited])
        places = [
            ("actuator_forcerange", model.actuator_forcelimited, [motors[i].actuator for i in limited]),
            ("jnt_actfrcrange", model.jnt_actfrclimited, [motors[i].joint for i in limited]),
        ]
        electric = [i for i, d in enumerate(motors) if is_dc_motor(model, d.actuator)]
        affine = [i for i in range(len(motors)) if i not in electric]

        def apply(fields: Fields, values: Values) -> None:
            strength = values["motor.strength"]
            if limited:
                scale = (values["motor.limit"] / nominal * strength[:, limited])[:, :, None]
                for field, has, where in places:
                    if has[where].any():
                        fields[field][:, where] *= scale
            if affine:
                fields["actuator_gainprm"][:, act[affine], 0] *= strength[:, affine]
                fields["actuator_biasprm"][:, act[affine], :3] *= strength[:, affine, None]
            if electric:
                gain = fields["actuator_gainprm"]
                gain[:, act[electric], KP] *= strength[:, electric]
                gain[:, act[electric], KD] *= strength[:, electric]
                if self.dc:
                    gain[:, act, R] = values["motor.resistance"]
                    gain[:, act, K] = values["motor.kt"]
                    gain[:, act, VMAX] = values["motor.voltage"]
                    if self.dc.voltage_control:
                        kt, ohm = values["motor.kt"], values["motor.resistance"]
                        gain[:, act, KP] *= values["motor.voltage"] * kt / ohm
                        # the engine's controller makes up for back-EMF, and this takes that away again
                        gain[:, act, KD] = gain[:, act, KD] * values["motor.voltage"] * kt / ohm + kt**2 / ohm
                    if "motor.heating" in values:
                        fields["actuator_dynprm"][:, act, THERMAL_RESISTANCE] = values["motor.heating"]
                elif self.no_load_speed:
                    kt = SUPPLY / values["motor.no_load_speed"]
                    gain[:, act, K] = kt
                    gain[:, act, R] = kt * SUPPLY / (values["motor.limit"] * strength)

        return Bound(parameters, apply)

    def _dc_parameters(self, dc: DC, motors: list[Drive]) -> list[Parameter]:
        stated = [(KT, dc.kt), (RESISTANCE, dc.resistance), (VOLTAGE, dc.voltage)]
        if dc.thermal_resistance:
            stated.append((HEATING, dc.thermal_resistance))
        return [quantity.factor(d.name, value, 1.3, 0.05, span=5.0) for quantity, value in stated for d in motors]


def _limit(model: mujoco.MjModel, d: Drive) -> float:
    """The drive's torque limit [N m]; 0 where it has none."""
    limit = torque_limit(model, d.actuator, commanded=False)
    return limit if np.isfinite(limit) else 0.0


def _make_dc_motor(
    actuator: mujoco.MjsActuator, model: mujoco.MjModel, d: Drive, dc: DC | None, limit: float, speed: float
) -> None:
    kt = dc.kt if dc else SUPPLY / speed
    resistance = dc.resistance if dc else kt * SUPPLY / limit
    heat = (
        [dc.thermal_resistance, dc.thermal_capacity, 0, 0.00393, dc.ambient, dc.ambient]
        if dc and dc.thermal_resistance
        else [0.0] * 6
    )
    kp, kd = float(model.actuator_gainprm[d.actuator, 0]), float(-model.actuator_biasprm[d.actuator, 2])
    actuator.set_to_dcmotor(
        motorconst=[kt, kt],
        resistance=resistance,
        saturation=[limit, 0, 0],
        controller=[kp, 0, kd, 0, 0, dc.voltage if dc else SUPPLY],
        thermal=heat,  # copper: 0.393 % more resistance per K
        ctrlspec=int(mujoco.mjtCtrlInput.mjINPUT_POS),
    )
