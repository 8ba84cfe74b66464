"""What the robots report: recorded physics, late, skewed, offset, noisy, rounded, and sometimes not at all."""

import math
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from gapless import rotations
from gapless.arrays import Array, Bools, Ints
from gapless.delay import in_steps, state_ago
from gapless.errors import BadInput, unknown
from gapless.robots import IMU, drives, imu_of
from gapless.twin import ACCELEROMETER, Twin
from gapless.worlds.command_path import rounded

SIGNALS = ("q", "dq", "tau", "quat", "gyro", "acc")
IMU_FIELDS = tuple(f"path.{f}" for f in ("imu_roll", "imu_pitch", "slope_roll", "slope_pitch", "bias_gyro"))


def seat_of(path: Mapping[str, Array], imu: IMU) -> Array:
    """Orientation of IMUs in their bases, as modelled and as mounted. Shape: (n, 4)."""
    return np.asarray(rotations.multiply(imu.quat, rotations.roll_pitch(path["path.imu_roll"], path["path.imu_pitch"])))


def ground_of(path: Mapping[str, Array]) -> Array:
    """Orientation of the ground. Shape: (n, 4)."""
    return rotations.roll_pitch(path["path.slope_roll"], path["path.slope_pitch"])


def to_imu(signal: str, true: Array, path: Mapping[str, Array], imu: IMU) -> Array:
    """What an IMU without noise reads: `quat` against gravity, `gyro` and `acc` in its own frame. Shapes: (n, ..., 4 or 3).

    `true` is the base's orientation, its turn rate in its own frame, or the acceleration in the frame of the IMU's site; `path`
    has the fields of n worlds.
    """
    shape = (len(true), *(1,) * (true.ndim - 2))
    if signal == "acc":  # the engine's sensor is in the frame of the site already
        mount = rotations.roll_pitch(path["path.imu_roll"], path["path.imu_pitch"]).reshape(*shape, 4)
        return np.asarray(rotations.rotate_back(mount, true))
    seat = seat_of(path, imu).reshape(*shape, 4)
    if signal == "gyro":
        return np.asarray(rotations.rotate_back(seat, true) + path["path.bias_gyro"].reshape(*shape, 3))
    return np.asarray(rotations.multiply(rotations.multiply(ground_of(path).reshape(*shape, 4), true), seat))


def from_imu(signal: str, read: Array, path: Mapping[str, Array], imu: IMU) -> Array:
    """The inverse of `to_imu`: the base's orientation, or its turn rate in its own frame. Shape: (n, 4 or 3)."""
    back = seat_of(path, imu) * [1, -1, -1, -1]
    if signal == "gyro":
        return np.asarray(rotations.rotate_back(back, read - path["path.bias_gyro"]))
    return np.asarray(rotations.multiply(rotations.multiply(ground_of(path) * [1, -1, -1, -1], read), back))


def age_of(path: Mapping[str, Array]) -> Array:
    """How old the reading of each joint is when it is taken [s]. Shape: (n, joints)."""
    late = path["path.observation"]
    return np.asarray(late + path["path.skew"][:, None] * np.arange(late.shape[1]))


def columns_of(model: mujoco.MjModel) -> dict[str, tuple[str, Ints]]:
    """Signal to the field of the engine's state that it shows, and the columns of it."""
    qpos, dofs = np.array([(d.qpos, d.dof) for d in drives(model)], dtype=np.int64).reshape(-1, 2).T.copy()
    out, imu = {"q": ("qpos", qpos), "dq": ("qvel", dofs), "tau": ("qfrc_actuator", dofs)}, imu_of(model)
    if imu is not None:
        out |= {"base_pos": ("qpos", imu.qpos + np.arange(3)), "quat": ("qpos", imu.qpos + np.arange(3, 7))}
        out |= {"base_vel": ("qvel", imu.dof + np.arange(3)), "gyro": ("qvel", imu.dof + np.arange(3, 6))}
    if ACCELEROMETER in [model.sensor(i).name for i in range(model.nsensor)]:
        out["acc"] = ("sensordata", int(model.sensor(ACCELEROMETER).adr[0]) + np.arange(3))
    return out


class Sense:
    """Readings of n worlds: a ring of recorded steps, and the path that distorts them."""

    def __init__(self, twin: Twin, n: int, signals: Sequence[str], high: Mapping[str, float]):
        model = twin.model
        self._timestep, self._period = model.opt.timestep, twin.control_dt
        self.imu = imu_of(model)
        places = columns_of(model)
        for signal in signals:
            if signal not in SIGNALS:
                raise unknown("signal", signal, SIGNALS)
            if signal in ("quat", "gyro", "acc") and self.imu is None:
                raise BadInput(f"{twin.name} has a fixed base, so there is no IMU to read {signal!r} from")
            if signal not in places:
                raise BadInput('the signal "acc" needs an accelerometer in the model: add Sensors(accelerometer=True)')
        self._gravity = model.opt.gravity.copy()
        self._columns = {signal: places[signal] for signal in signals}
        late = high.get("latency.observation", 0.0) + len(twin.drives) * high.get("sensors.skew", 0.0)
        periods = math.ceil(late / twin.control_dt) + 2
        width = {"qpos": model.nq, "qvel": model.nv, "qfrc_actuator": model.nv, "sensordata": model.nsensordata}
        self._ring = {f: np.zeros((periods, n, twin.substeps, width[f])) for f, _ in self._columns.values()}
        self._newest, self._periods = 0, periods
        self._noisy = "sensors.noise_q" in high
        self._late = {s: np.zeros((n, len(c))) for s, (_, c) in self._columns.items()}
        """Age of readings in steps."""
        self._seat, self._ground = np.zeros((n, 4)), np.zeros((n, 4))
        self._drift = np.zeros((n, 3))
        self._drawn = {s: np.zeros((n, 3 if s == "quat" else len(c))) for s, (_, c) in self._columns.items()}
        self.readings: dict[str, Array] = {s: np.zeros((n, len(c))) for s, (_, c) in self._columns.items()}

    def next_period(self) -> dict[str, Array]:
        """Where the next control period's steps are to be recorded, by field. Shape of each: (n, substeps, width)."""
        return {f: ring[(self._newest + 1) % self._periods] for f, ring in self._ring.items()}

    def update(self, path: Mapping[str, Array], rng: np.random.Generator) -> None:
        """Take up the period just recorded and read it. Randomness is drawn for all worlds, whatever happened in any."""
        self._newest = (self._newest + 1) % self._periods
        lost: Bools | None = None
        if self._noisy:
            for drawn in self._drawn.values():
                rng.standard_normal(out=drawn)
            if self.imu is not None:
                step = path["path.drift_gyro"][:, None] * math.sqrt(self._period)
                self._drift += step * rng.standard_normal(self._drift.shape)
            lost = rng.random(len(self._drift)) < path["path.frame_drop"]
        for signal, (field, columns) in self._columns.items():
            read = np.empty((len(self._drift), len(columns)))
            state_ago(self._ring[field], self._newest, columns, self._late[signal], read)
            out = self._distort(signal, read, path, slice(None))
            if lost is not None and lost.any():
                out[lost] = self.readings[signal][lost]
            self.readings[signal] = out

    def wire(self, path: Mapping[str, Array], ids: Ints) -> None:
        """Take up what stays the same until the path of worlds changes: how late they report, how IMU and ground lie."""
        late = age_of({name: path[name][ids] for name in ("path.observation", "path.skew")})
        # the IMU is on the bus of the first joint; a thing without any joints has no bus, and no delay
        bus = late[:, :1] if late.shape[1] else np.zeros((len(late), 1))
        for signal, steps in self._late.items():
            steps[ids] = in_steps(late if signal in ("q", "dq", "tau") else bus, self._timestep)
        if self.imu is not None:
            of = {name: path[name][ids] for name in IMU_FIELDS}
            self._seat[ids], self._ground[ids] = seat_of(of, self.imu), ground_of(of)

    def past(self, field: str, columns: Ints, age: Array) -> Array:
        """A recorded field of every world as it was some time ago [s], exact between steps. age and result: (n, columns)."""
        assert age.shape[1] == len(columns)  # compiled code does not check
        out = np.empty(age.shape)
        late = np.ascontiguousarray(in_steps(age, self._timestep))
        state_ago(self._ring[field], self._newest, columns, late, out)
        return out

    def reset(self, ids: Ints, qpos: Array, qvel: Array, path: Mapping[str, Array]) -> None:
        """Worlds that start anew have been in this state for as long as the ring reaches back."""
        self._drift[ids] = 0.0
        still = {"qpos": qpos, "qvel": qvel, "qfrc_actuator": np.zeros_like(qvel)}
        if "acc" in self._columns:
            still["sensordata"] = self._at_rest(qpos, {k: v[ids] for k, v in path.items()})
        for field, ring in self._ring.items():
            ring[:, ids] = still[field][:, None]
        for signal, (field, columns) in self._columns.items():
            self.readings[signal] = self.readings[signal].copy()  # what was given out is not changed
            self.readings[signal][ids] = self._distort(signal, still[field][:, columns], path, ids)

    def _at_rest(self, qpos: Array, path: Mapping[str, Array]) -> Array:
        """Accelerometer readings of a robot that does not accelerate."""
        assert self.imu is not None
        field, columns = self._columns["acc"]
        out = np.zeros((len(qpos), self._ring[field].shape[-1]))
        base = qpos[:, self.imu.qpos + 3 : self.imu.qpos + 7]
        ground = rotations.roll_pitch(path["path.slope_roll"], path["path.slope_pitch"])
        out[:, columns] = rotations.rotate_back(
            rotations.multiply(rotations.multiply(ground, base), self.imu.quat), -self._gravity
        )
        return out

    def _distort(self, signal: str, true: Array, path: Mapping[str, Array], ids: slice | Ints) -> Array:
        """What the sensor makes of the truth, for worlds `ids`."""
        noise = self._drawn[signal][ids]

        def of(name: str) -> Array:
            values = path[f"path.{name}"][ids]
            return values[:, None] if values.ndim == 1 else values

        if signal == "q":
            return np.asarray(rounded(true + of("offset_q") + of("noise_q") * noise, of("quantum_q")))
        if signal == "dq":
            return np.asarray(rounded(true + of("noise_dq") * noise, of("quantum_dq")))
        if signal == "tau":
            return true + of("noise_tau") * noise
        assert self.imu is not None
        if signal == "gyro":
            return rotations.rotate_back(self._seat[ids], true) + of("bias_gyro") + self._drift[ids] + of("noise_gyro") * noise
        if signal == "acc":
            return to_imu(signal, true, {k: path[k][ids] for k in IMU_FIELDS}, self.imu) + of("noise_acc") * noise
        seen = rotations.multiply(rotations.multiply(self._ground[ids], true), self._seat[ids])
        half = of("noise_tilt") * noise / 2
        shake = np.concatenate([np.sqrt(np.maximum(1 - (half**2).sum(axis=1, keepdims=True), 0)), half], axis=1)
        quat = rotations.multiply(seen, shake)
        return np.asarray(quat / np.linalg.norm(quat, axis=1, keepdims=True))
