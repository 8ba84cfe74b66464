# mypy: ignore-errors
# (types of cyclonedds are values, which no type checker follows)
"""The messages of Unitree robots (`rt/lowcmd`, `rt/lowstate`) as their SDK publishes them, and their checksum."""

import dataclasses
import operator
import struct
from dataclasses import dataclass
from functools import cache

import numba
import numpy as np
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import autoid, final
from cyclonedds.idl.types import array, float32, int16, int32, uint8, uint16, uint32


@dataclass
@final
@autoid("sequential")
class GoMotorCmd(IdlStruct, typename="unitree_go.msg.dds_.MotorCmd_"):
    mode: uint8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    reserve: array[uint32, 3]


@dataclass
@final
@autoid("sequential")
class GoBmsCmd(IdlStruct, typename="unitree_go.msg.dds_.BmsCmd_"):
    off: uint8
    reserve: array[uint8, 3]


@dataclass
@final
@autoid("sequential")
class GoLowCmd(IdlStruct, typename="unitree_go.msg.dds_.LowCmd_"):
    head: array[uint8, 2]
    level_flag: uint8
    frame_reserve: uint8
    sn: array[uint32, 2]
    version: array[uint32, 2]
    bandwidth: uint16
    motor_cmd: array[GoMotorCmd, 20]
    bms_cmd: GoBmsCmd
    wireless_remote: array[uint8, 40]
    led: array[uint8, 12]
    fan: array[uint8, 2]
    gpio: uint8
    reserve: uint32
    crc: uint32


@dataclass
@final
@autoid("sequential")
class GoImu(IdlStruct, typename="unitree_go.msg.dds_.IMUState_"):
    quaternion: array[float32, 4]
    gyroscope: array[float32, 3]
    accelerometer: array[float32, 3]
    rpy: array[float32, 3]
    temperature: uint8


@dataclass
@final
@autoid("sequential")
class GoMotorState(IdlStruct, typename="unitree_go.msg.dds_.MotorState_"):
    mode: uint8
    q: float32
    dq: float32
    ddq: float32
    tau_est: float32
    q_raw: float32
    dq_raw: float32
    ddq_raw: float32
    temperature: uint8
    lost: uint32
    reserve: array[uint32, 2]


@dataclass
@final
@autoid("sequential")
class GoBms(IdlStruct, typename="unitree_go.msg.dds_.BmsState_"):
    version_high: uint8
    version_low: uint8
    status: uint8
    soc: uint8
    current: int32
    cycle: uint16
    bq_ntc: array[uint8, 2]
    mcu_ntc: array[uint8, 2]
    cell_vol: array[uint16, 15]


@dataclass
@final
@autoid("sequential")
class GoLowState(IdlStruct, typename="unitree_go.msg.dds_.LowState_"):
    head: array[uint8, 2]
    level_flag: uint8
    frame_reserve: uint8
    sn: array[uint32, 2]
    version: array[uint32, 2]
    bandwidth: uint16
    imu_state: GoImu
    motor_state: array[GoMotorState, 20]
    bms_state: GoBms
    foot_force: array[int16, 4]
    foot_force_est: array[int16, 4]
    tick: uint32
    wireless_remote: array[uint8, 40]
    bit_flag: uint8
    adc_reel: float32
    temperature_ntc1: uint8
    temperature_ntc2: uint8
    power_v: float32
    power_a: float32
    fan_frequency: array[uint16, 4]
    reserve: uint32
    crc: uint32


@dataclass
@final
@autoid("sequential")
class HgMotorCmd(IdlStruct, typename="unitree_hg.msg.dds_.MotorCmd_"):
    mode: uint8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    reserve: uint32


@dataclass
@final
@autoid("sequential")
class HgLowCmd(IdlStruct, typename="unitree_hg.msg.dds_.LowCmd_"):
    mode_pr: uint8
    mode_machine: uint8
    motor_cmd: array[HgMotorCmd, 35]
    reserve: array[uint32, 4]
    crc: uint32


@dataclass
@final
@autoid("sequential")
class HgImu(IdlStruct, typename="unitree_hg.msg.dds_.IMUState_"):
    quaternion: array[float32, 4]
    gyroscope: array[float32, 3]
    accelerometer: array[float32, 3]
    rpy: array[float32, 3]
    temperature: int16


@dataclass
@final
@autoid("sequential")
class HgMotorState(IdlStruct, typename="unitree_hg.msg.dds_.MotorState_"):
    mode: uint8
    q: float32
    dq: float32
    ddq: float32
    tau_est: float32
    temperature: array[int16, 2]
    vol: float32
    sensor: array[uint32, 2]
    motorstate: uint32
    reserve: array[uint32, 4]


@dataclass
@final
@autoid("sequential")
class HgLowState(IdlStruct, typename="unitree_hg.msg.dds_.LowState_"):
    version: array[uint32, 2]
    mode_pr: uint8
    mode_machine: uint8
    tick: uint32
    imu_state: HgImu
    motor_state: array[HgMotorState, 35]
    wireless_remote: array[uint8, 40]
    reserve: array[uint32, 4]
    crc: uint32


_CODES = {uint8: "B", uint16: "H", int16: "h", uint32: "I", int32: "i", float32: "f"}


def zero(kind: type):
    """A message with zeros everywhere."""
    return kind(**{f.name: _zero(f.type) for f in dataclasses.fields(kind)})


def _parts(kind):
    """Number and type of a field's values."""
    inner = getattr(kind, "__metadata__", (kind,))[-1]
    length = getattr(inner, "length", None)
    return (length, inner.subtype) if length is not None else (1, kind)


def _zero(kind):
    count, of = _parts(kind)
    made = [zero(of) if dataclasses.is_dataclass(of) else 0.0 if of is float32 else 0 for _ in range(count)]
    return made if getattr(getattr(kind, "__metadata__", (kind,))[-1], "length", None) is not None else made[0]


@cache
def layout(kind: type) -> str:
    """A message as `struct` packs it in native alignment; a struct inside ends on a whole word, as a C compiler has it."""
    out = "0I"
    for field in dataclasses.fields(kind):
        count, of = _parts(field.type)
        out += layout(of) * count if dataclasses.is_dataclass(of) else f"{count}{_CODES[of]}"
    return out + "0I"


def checksum(message) -> int:
    """CRC-32 (polynomial 0x04C11DB7, no reflection, no final complement) over all words of the C layout but the last."""
    numbers = []
    _flat(message, numbers)
    return int(_crc(np.frombuffer(_packer(type(message)).pack(*numbers), "<u4")[:-1]))


@cache
def _packer(kind: type) -> struct.Struct:
    return struct.Struct("@" + layout(kind))


@cache
def _fields(kind: type):
    """What takes all fields of a message at once, and of each whether it is one number, some, a struct, or some of these."""
    names, kinds = [], []
    for field in dataclasses.fields(kind):
        many = getattr(getattr(field.type, "__metadata__", (field.type,))[-1], "length", None) is not None
        names.append(field.name)
        kinds.append(2 * dataclasses.is_dataclass(_parts(field.type)[1]) + many)
    return operator.attrgetter(*names), tuple(kinds)


def _flat(message, out: list) -> None:
    """All numbers of a message in the order of its layout."""
    take, kinds = _fields(type(message))
    for value, kind in zip(take(message), kinds, strict=True):
        if kind == 0:
            out.append(value)
        elif kind == 1:
            out.extend(value)
        else:
            for part in value if kind == 3 else (value,):
                _flat(part, out)


@numba.njit(cache=True)
def _crc(words):
    crc = np.uint32(0xFFFFFFFF)
    for word in words:
        crc ^= word
        for _ in range(32):
            crc = (
                np.uint32(crc << np.uint32(1)) ^ np.uint32(0x04C11DB7)
                if crc & np.uint32(0x80000000)
                else np.uint32(crc << np.uint32(1))
            )
    return crc
