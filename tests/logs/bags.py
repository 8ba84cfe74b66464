"""ROS 2 bags of a log as robots record them, written by libraries of others (rosbags, mcap-ros2-support)."""

from pathlib import Path
from typing import Any

import numpy as np

from gapless.logs import Log

EPOCH = 1_700_000_000_000_000_000  # ns
UNITREE = {
    "unitree_go/msg/MotorState": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\nfloat32 q_raw\n"
    "float32 dq_raw\nfloat32 ddq_raw\nint8 temperature\nuint32 lost\nuint32[2] reserve",
    "unitree_go/msg/MotorCmd": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 tau\nfloat32 kp\nfloat32 kd\nuint32[3] reserve",
    "unitree_go/msg/IMUState": "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer\nfloat32[3] rpy\n"
    "int8 temperature",
    "unitree_go/msg/BmsState": "uint8 version_high\nuint8 version_low\nuint8 status\nuint8 soc\nint32 current\nuint16 cycle\n"
    "int8[2] bq_ntc\nint8[2] mcu_ntc\nuint16[15] cell_vol",
    "unitree_go/msg/BmsCmd": "uint8 off\nuint8[3] reserve",
    "unitree_go/msg/LowState": "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\n"
    "uint16 bandwidth\nIMUState imu_state\nMotorState[20] motor_state\nBmsState bms_state\nint16[4] foot_force\n"
    "int16[4] foot_force_est\nuint32 tick\nuint8[40] wireless_remote\nuint8 bit_flag\nfloat32 adc_reel\nint8 temperature_ntc1\n"
    "int8 temperature_ntc2\nfloat32 power_v\nfloat32 power_a\nuint16[4] fan_frequency\nuint32 reserve\nuint32 crc",
    "unitree_go/msg/LowCmd": "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\n"
    "uint16 bandwidth\nMotorCmd[20] motor_cmd\nBmsCmd bms_cmd\nuint8[40] wireless_remote\nuint8[12] led\nuint8[2] fan\n"
    "uint8 gpio\nuint32 reserve\nuint32 crc",
}
POINT = "trajectory_msgs/msg/JointTrajectoryPoint"
CONTROLLER = f"std_msgs/Header header\nstring[] joint_names\n{POINT} reference\n{POINT} feedback\n{POINT} error\n{POINT} output"


class Writer:
    """A bag folder under construction: `write("/topic", "std_msgs/msg/Float64MultiArray", seconds, {...})`."""

    def __init__(self, folder: Path, mcap: bool = False, version: int = 9):
        from rosbags.rosbag2 import StoragePlugin, Writer as Bag
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        self.store = get_typestore(Stores.ROS2_HUMBLE)
        for name, text in {**UNITREE, "control_msgs/msg/JointTrajectoryControllerState": CONTROLLER}.items():
            self.store.register(get_types_from_msg(text, name))
        plugin = StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3
        self.bag: Any = Bag(folder, version=version, storage_plugin=plugin)  # type: ignore[arg-type]
        self.bag.open()
        self.topics: dict[str, Any] = {}

    def write(self, topic: str, kind: str, seconds: float, fields: dict[str, Any]) -> None:
        if topic not in self.topics:
            self.topics[topic] = self.bag.add_connection(topic, kind, typestore=self.store)
        data = self.store.serialize_cdr(self.made(kind, fields), kind)
        self.bag.write(self.topics[topic], EPOCH + round(seconds * 1e9), data)

    def made(self, kind: str, given: dict[str, Any]) -> Any:
        """A message; what is not given is zero or empty."""
        numbers = {"float64": "f8", "float32": "f4"}
        values = {}
        for name, (shape, of) in self.store.get_msgdef(kind).fields:
            base, length = (of, 0) if shape.name in ("BASE", "NAME") else of
            part = (
                base[0]
                if shape.name == "BASE"
                else base
                if shape.name == "NAME"
                else base[1][0]
                if base[0].name == "BASE"
                else base[1]
            )
            if shape.name == "BASE":
                values[name] = given.get(name, "" if part == "string" else 0)
            elif shape.name == "NAME":
                values[name] = self.made(part, given.get(name, {}))
            elif base[0].name == "NAME":
                values[name] = [self.made(part, g) for g in given.get(name, [{}] * length)]
            elif part == "string":
                values[name] = list(given.get(name, []))
            else:
                values[name] = np.array(given.get(name, [0] * length), numbers.get(part, part))
        return self.store.types[kind](**values)

    def close(self) -> None:
        self.bag.close()


def stamp(seconds: float) -> dict[str, Any]:
    total = EPOCH + round(seconds * 1e9)
    return {"stamp": {"sec": total // 10**9, "nanosec": total % 10**9}, "frame_id": "base"}


def states(writer: Writer, log: Log) -> None:
    """/joint_states, stamped."""
    dq = log.at("dq", log["q"].time) if "dq" in log else None
    for i, t in enumerate(log["q"].time.tolist()):
        message = {"header": stamp(t), "name": list(log.joints), "position": log["q"].values[i]}
        writer.write(
            "/joint_states", "sensor_msgs/msg/JointState", t + 1e-4, message | ({} if dq is None else {"velocity": dq[i]})
        )


def imu(writer: Writer, log: Log) -> None:
    """Orientation, x first as ROS has it, and turn rate."""
    for i, t in enumerate(log["quat"].time.tolist()):
        w, *xyz = log["quat"].values[i].tolist()
        turn = dict(zip("xyz", log["gyro"].values[i].tolist(), strict=True))
        message = {"header": stamp(t), "orientation": dict(zip("xyzw", [*xyz, w], strict=True)), "angular_velocity": turn}
        writer.write("/imu/data", "sensor_msgs/msg/Imu", t, message)


def trajectories(writer: Writer, log: Log) -> None:
    """One point a message, as policies send them; header stamp 0 means now."""
    for i, t in enumerate(log["q_cmd"].time.tolist()):
        point = {"positions": log["q_cmd"].values[i], "time_from_start": {"sec": 0, "nanosec": 0}}
        message = {"joint_names": list(log.joints), "points": [point]}
        writer.write("/arm_controller/joint_trajectory", "trajectory_msgs/msg/JointTrajectory", t, message)


def arrays(writer: Writer, log: Log, order: list[int] | None = None) -> None:
    """The commands of a forward_position_controller, whose joints have an order of their own."""
    for i, t in enumerate(log["q_cmd"].time.tolist()):
        values = log["q_cmd"].values[i][order or slice(None)]
        writer.write("/forward_position_controller/commands", "std_msgs/msg/Float64MultiArray", t, {"data": values})


def controller_states(writer: Writer, log: Log) -> None:
    """What a joint_trajectory_controller publishes."""
    wanted = log.at("q_cmd", log["q"].time)
    for i, t in enumerate(log["q"].time.tolist()):
        message = {"header": stamp(t), "joint_names": list(log.joints), "reference": {"positions": wanted[i]}}
        message["feedback"] = {"positions": log["q"].values[i]}
        writer.write("/controller_state", "control_msgs/msg/JointTrajectoryControllerState", t, message)


def unitree(writer: Writer, log: Log, kp: float = 20.0, kd: float = 0.5) -> None:
    """/lowstate and /lowcmd of a quadruped: 20 motors of which some are used, nothing stamped."""
    spare = [{}] * (20 - len(log.joints))
    for i, t in enumerate(log["q"].time.tolist()):
        motors = [{"q": q, "dq": 0.0} for q in log["q"].values[i]] + spare
        writer.write(
            "/lowstate", "unitree_go/msg/LowState", t, {"motor_state": motors, "imu_state": {"quaternion": [1, 0, 0, 0]}}
        )
    for i, t in enumerate(log["q_cmd"].time.tolist()):
        motors = [{"q": q, "kp": kp, "kd": kd} for q in log["q_cmd"].values[i]] + spare
        writer.write("/lowcmd", "unitree_go/msg/LowCmd", t, {"motor_cmd": motors})
