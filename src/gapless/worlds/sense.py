"""What the robots report: recorded physics, late, skewed, offset, noisy, rounded, and sometimes not at all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Mounting:
    """How the IMUs of n worlds are mounted and how their ground lies, as rotations (n, 4), and what their gyros add (n, 3)."""

    tilt: Array
    """Of the IMU against its site."""
    seat: Array
    """Of the IMU in its base."""
    ground: Array
    bias: Array

    @classmethod
    def of(cls, path: Mapping[str, Array], imu: IMU) -> "Mounting":
        """As the path of n worlds says."""
        tilt = rotations.roll_pitch(path["path.imu_roll"], path["path.imu_pitch"])
        ground = rotations.roll_pitch(path["path.slope_roll"], path["path.slope_pitch"])
        return cls(tilt, np.asarray(rotations.multiply(imu.quat, tilt)), ground, path["path.bias_gyro"])

    def read(self, signal: str, true: Array, ids: Ints | slice = slice(None)) -> Array:
        """What IMUs without noise read: `quat` against gravity, `gyro` and `acc` in their own frames.

        true: orientations of bases, their turn rates in their own frames, or accelerations in the frames of the IMUs' sites, in
        worlds `ids`. Shapes: (k, ..., 4 or 3).
        """

        def like(values: Array) -> Array:
            return values[ids].reshape(len(true), *(1,) * (true.ndim - 2), -1)

        if signal == "acc":  # the engine's sensor is in the frame of the site already
            return np.asarray(rotations.rotate_back(like(self.tilt), true))
        if signal == "gyro":
            return np.asarray(rotations.rotate_back(like(self.seat), true) + like(self.bias))
        return np.asarray(rotations.multiply(rotations.multiply(like(self.ground), true), like(self.seat)))

    def undo(self, signal: str, read: Array) -> Array:
        """The orientation of bases, or their turn rates in their own frames, from readings. Shape: (n, 4 or 3)."""
        back = self.seat * [1, -1, -1, -1]
        if signal == "gyro":
            return np.asarray(rotations.rotate_back(back, read - self.bias))
        return np.asarray(rotations.multiply(rotations.multiply(self.ground * [1, -1, -1, -1], read), back))


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
        self._mounting = Mounting(np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 3)))
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
            mounted = Mounting.of({name: path[name][ids] for name in IMU_FIELDS}, self.imu)
            for mine, values in zip(vars(self._mounting).values(), vars(mounted).values(), strict=True):
                mine[ids] = values

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
            still["sensordata"] = self._at_rest(qpos, ids)
        for field, ring in self._ring.items():
            ring[:, ids] = still[field][:, None]
        for signal, (field, columns) in self._columns.items():
            self.readings[signal] = self.readings[signal].copy()  # what was given out is not changed
            self.readings[signal][ids] = self._distort(signal, still[field][:, columns], path, ids)

    def _at_rest(self, qpos: Array, ids: Ints) -> Array:
        """Accelerometer readings of a robot that does not accelerate."""
        assert self.imu is not None
        field, columns = self._columns["acc"]
        out = np.zeros((len(qpos), self._ring[field].shape[-1]))
        base = rotations.multiply(self._mounting.ground[ids], qpos[:, self.imu.qpos + 3 : self.imu.qpos + 7])
        out[:, columns] = rotations.rotate_back(rotations.multiply(base, self.imu.quat), -self._gravity)
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
        read = self._mounting.read(signal, true, ids)
        if signal == "gyro":
            return read + self._drift[ids] + of("noise_gyro") * noise
        if signal == "acc":
            return read + of("noise_acc") * noise
        half = of("noise_tilt") * noise / 2
        shake = np.concatenate([np.sqrt(np.maximum(1 - (half**2).sum(axis=1, keepdims=True), 0)), half], axis=1)
        quat = rotations.multiply(read, shake)
        return np.asarray(quat / np.linalg.norm(quat, axis=1, keepdims=True))
