"""MIT drives on CAN buses, through python-can: a robot of the protocol, by joint name.

interface = "socketcan"                 # as python-can names it; "virtual" is a bus inside of this process
channels = ["can0", "can1"]
period = 0.002                          # refused where the frames do not fit the buses
bitrate = 1000000
[ranges]                                # of the vendor
tau = 40.0
[joints]
FL_hip = { id = 1 }                     # on the first channel unless `bus` says otherwise
FL_thigh = { id = 2, sign = -1, zero = 0.1 }
[imu]                                   # where one answers on the bus: quaternion at this id, gyro at the next
id = 80
"""

import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless import checks
from gapless.arrays import Array
from gapless.checks import Checked, checked
from gapless.deploy import mit
from gapless.errors import BadInput
from gapless.files import refusing, text
from gapless.robots import MIT

MASTER = 0
"""Id under which drives answer."""
FRAME_BITS = 135
"""Of a frame of eight bytes with the worst stuffing, and the gap behind it; a reply of six has 115."""
REPLY_BITS = 115
LISTENS = 0.1
"""s for which a bus is listened to before the first frame is sent."""
SPIN = 40.0
"""rad/s that the gyro's 16 bits reach."""


@dataclass(frozen=True)
class Drive(Checked):
    """Where a joint's drive is, which way it turns, and where its zero is [rad]."""

    id: int = checked(checks.whole, low=1, high=0x7FF)
    bus: int = checked(checks.whole, 0, low=0, high=7)
    sign: int = checked(checks.whole, 1, low=-1, high=1)
    zero: float = checked(checks.number, 0.0)


@dataclass(frozen=True)
class Imu(Checked, where="imu."):
    """Of an IMU on the first bus."""

    id: int = checked(checks.whole, low=1, high=0x7FE)


@dataclass(frozen=True)
class CanConfig(Checked):
    """What a file says about the drives of a robot."""

    joints: Mapping[str, Mapping[str, Any]] = checked(checks.mapping)
    channels: tuple[str, ...] = checked(checks.texts)
    interface: str = checked(checks.text, "socketcan")
    period: float = checked(checks.number, 0.002, low=1e-4, high=0.1)
    bitrate: int = checked(checks.whole, 1_000_000, low=10_000, high=8_000_000)
    ranges: mit.Ranges = checked(checks.part_of, factory=mit.Ranges, kind=mit.Ranges)
    imu: Imu | None = checked(checks.part_of, None, kind=Imu)

    def __post_init__(self) -> None:
        super().__post_init__()
        drives = self.drives
        if not drives or len({(d.bus, d.id) for d in drives.values()}) < len(drives):
            raise BadInput("joints: every joint needs an id of its own on its bus")
        for name, d in drives.items():
            if d.bus >= len(self.channels) or d.sign == 0:
                raise BadInput(f"joints.{name}: bus is one of {len(self.channels)} channels, and sign 1 or -1")
        for bus in range(len(self.channels)):
            busy = sum(d.bus == bus for d in drives.values()) * (FRAME_BITS + REPLY_BITS) / self.bitrate
            if busy > self.period:
                raise BadInput(
                    f"period: the frames of {self.channels[bus]} take {1e3 * busy:.2f} ms and the period is "
                    f"{1e3 * self.period:g} ms: use more buses or a longer period"
                )

    @property
    def drives(self) -> dict[str, Drive]:
        """By joint."""
        return {name: checks.part_of(entry, f"joints.{name}", Drive) for name, entry in self.joints.items()}


def load_can(path: str | Path) -> CanConfig:
    """Read what a file says about the drives of a robot."""
    with refusing(f"{path}: not valid TOML", tomllib.TOMLDecodeError):
        table = tomllib.loads(text(Path(path), 1 << 20))
    try:
        return checks.part_of(table, "the drives", CanConfig)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def open_buses(config: CanConfig) -> list[Any]:
    """The buses of a robot."""
    with refusing("a CAN bus needs one more package: pip install 'gapless[deploy]'", ImportError):
        import can
    with refusing(
        f"{config.interface} {', '.join(config.channels)}: the bus cannot be opened", can.CanError, OSError, ValueError
    ):
        return [can.Bus(channel=c, interface=config.interface, bitrate=config.bitrate) for c in config.channels]


def frame(id: int, data: bytes) -> Any:
    """A CAN frame."""
    import can

    return can.Message(arbitration_id=id, data=data, is_extended_id=False)


class CanRobot:
    """A robot whose drives answer each command with what they measure.

    A reading counts once every drive has answered: replies that are late or out of order are never taken for motion.
    """

    def __init__(self, config: CanConfig, buses: list[Any], clock: Callable[[], float] = time.monotonic):
        self.config, self.joints, self.period, self.realtime = config, tuple(config.drives), config.period, True
        self._buses, self._clock, self._drives = buses, clock, list(config.drives.values())
        self._place = {(d.bus, d.id): j for j, d in enumerate(self._drives)}
        self.most_gains = {"kp": config.ranges.kp, "kd": config.ranges.kd}
        n = len(self.joints)
        self._values, self._heard, self._told = np.zeros((3, n)), np.full(n, -np.inf), np.zeros(n, bool)
        self._imu, self._imu_heard = np.array([1.0, 0, 0, 0, 0, 0, 0]), -np.inf
        self._reading: dict[str, Array] = {}
        self._others = 0
        self.lost, self.ignored, self.mode, self._stopped, self._on = 0, 0, "idle", False, False
        """Replies that never came, and frames that were none of ours."""

    def read(self) -> Mapping[str, Array]:
        if not self._reading:  # drives answer only when they are told something: a frame without gains or torque
            time.sleep(LISTENS)
            self._listen()
            if self._others:
                raise BadInput("another program sends commands to these drives: stop it first")
            end = time.monotonic() + 1.0
            while not self._reading and time.monotonic() < end:
                self._tell(np.zeros((5, len(self.joints))))
                time.sleep(0.002)
                self._listen()
            if not self._reading:
                raise BadInput("no drive answers on the CAN bus: is it powered, and are ids and bitrate right?")
        self._listen()
        return self._reading

    def _listen(self) -> None:
        for number, bus in enumerate(self._buses):
            while (message := bus.recv(timeout=0)) is not None:
                self._hear(number, message)
        if self._told.all() and (self.config.imu is None or np.isfinite(self._imu_heard)):
            q, dq, tau = self._values
            self._reading = {"time": np.array(self._heard.min()), "q": q.copy(), "dq": dq.copy(), "tau": tau.copy()}
            if self.config.imu is not None:
                self._reading |= {
                    "quat": self._imu[:4].copy(),
                    "gyro": self._imu[4:].copy(),
                    "imu_time": np.array(self._imu_heard),
                }
            self._told[:] = False

    def _hear(self, bus: int, message: Any) -> None:
        imu = self.config.imu
        if message.arbitration_id == MASTER and len(message.data) == mit.REPLY:
            number, q, dq, tau = mit.decode_reply(bytes(message.data), self.config.ranges)
            j = self._place.get((bus, number))
            if j is not None:
                d = self._drives[j]
                self._values[:, j] = d.sign * q + d.zero, d.sign * dq, d.sign * tau
                self._heard[j], self._told[j] = self._clock(), True
                return
        elif imu is not None and bus == 0 and (message.arbitration_id - imu.id, len(message.data)) in ((0, 8), (1, 6)):
            whole = np.frombuffer(bytes(message.data), "<i2").astype(float)
            if message.arbitration_id == imu.id:
                self._imu[:4] = whole / max(float(np.linalg.norm(whole)), 1.0)
            else:
                self._imu[4:], self._imu_heard = whole * (SPIN / 32767), self._clock()
            return
        if (bus, message.arbitration_id) in self._place:  # a command, and not ours: a bus does not give back what we send
            self._others += 1
        self.ignored += 1

    def others(self) -> int:
        """Commands to our drives that another program sent."""
        return self._others

    def write(self, command: Mapping[str, Array]) -> None:
        if self._stopped:
            return
        if not self._on:
            for d in self._drives:
                self._buses[d.bus].send(frame(d.id, mit.ENABLE))
            self._on, self.mode = True, "driven"
        self.lost += int((~self._told).sum()) if self._told.any() else 0
        self._tell(np.stack([np.asarray(command[name], float) for name in MIT]))

    def _tell(self, command: Array) -> None:
        for j, d in enumerate(self._drives):
            q, dq, kp, kd, tau = command[:, j]
            data = mit.encode(d.sign * (q - d.zero), d.sign * dq, kp, kd, d.sign * tau, self.config.ranges)
            self._buses[d.bus].send(frame(d.id, data))

    def stop(self) -> None:
        if not self._stopped:
            for d in self._drives:
                self._buses[d.bus].send(frame(d.id, mit.DISABLE))
        self._stopped, self.mode = True, "stopped"

    def close(self) -> None:
        """Leave the buses."""
        for bus in self._buses:
            bus.shutdown()
