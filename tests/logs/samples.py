"""A small valid file of every format, for tests to read and to damage."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from gapless.logs import Log, write

JOINTS = ("hip", "knee")
TIME = np.arange(60) * 0.02
Q = 0.3 * np.sin(TIME[:, None] * [3.0, 5.0])
Q_CMD = 0.3 * np.sin((TIME[:, None] + 0.05) * [3.0, 5.0])


def log() -> Log:
    return Log.from_arrays(JOINTS, TIME, {"q": Q, "q_cmd": Q_CMD, "gyro": np.zeros((60, 3))}, host_time=TIME + 7)


def csv_text() -> str:
    rows = [f"{t!r},{a!r},{b!r},run,{c!r}" for t, (a, b), (c, _) in zip(TIME.tolist(), Q.tolist(), Q_CMD.tolist(), strict=True)]
    return "\n".join(["time,hip,knee,phase,told", *rows]) + "\n"


CSV_MAPPING = """
[[file]]
time = "time"
[file.columns]
hip = { signal = "q", joint = "hip", unit = "deg" }
knee = { signal = "q", joint = "knee", sign = -1 }
told = { signal = "q_cmd", joint = "hip" }
"""


def ros2(path: Path, chunked: bool = True) -> None:
    """JointState, a JointState command and Imu, as ROS 2 records them."""
    from mcap.writer import CompressionType
    from mcap_ros2.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD if chunked else CompressionType.NONE, enable_crcs=chunked)
        state = writer.register_msgdef("sensor_msgs/msg/JointState", JOINT_STATE)
        imu = writer.register_msgdef("sensor_msgs/msg/Imu", IMU)
        for i, t in enumerate(TIME):
            host = 1_700_000_000_000_000_000 + int(t * 1e9)
            header = {"stamp": {"sec": 1_700_000_000, "nanosec": int(t * 1e9) + 500_000}, "frame_id": "base"}
            message: dict[str, Any] = {"header": header, "name": list(JOINTS), "position": Q[i].tolist()}
            writer.write_message("/joint_states", state, {**message, "velocity": [1.0, 2.0], "effort": []}, host, host, i)
            told = {**message, "position": Q_CMD[i].tolist(), "velocity": [], "effort": []}
            writer.write_message("/joint_commands", state, told, host, host, i)
            turn = {"header": header, "orientation": {"x": 0.1, "y": 0.2, "z": 0.3, "w": 0.9}}
            turn |= {"angular_velocity": {"x": 1.0, "y": 2.0, "z": 3.0}, "linear_acceleration": {"x": 0.0, "y": 0.0, "z": 9.81}}
            turn |= {f"{k}_covariance": [0.0] * 9 for k in ("orientation", "angular_velocity", "linear_acceleration")}
            writer.write_message("/imu", imu, turn, host, host, i)
        writer.finish()


HEADER = "std_msgs/Header header\n"
PARTS = """
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
VECTOR = """
================================================================================
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
JOINT_STATE = HEADER + "string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort" + PARTS
IMU = HEADER + "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
IMU += "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
IMU += "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance" + PARTS + VECTOR


def lerobot(folder: Path, episodes: int = 1) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    data = folder / "data" / "chunk-000"
    data.mkdir(parents=True)
    (folder / "meta").mkdir()
    features = {
        k: {"dtype": "float32", "shape": [2], "names": ["hip.pos", "knee.pos"]} for k in ("observation.state", "action")
    }
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v3.0", "fps": 50, "features": features}))
    n = len(TIME)
    table = pa.table(
        {
            "observation.state": pa.array(np.tile(Q, (episodes, 1)).tolist(), pa.list_(pa.float32())),
            "action": pa.array(np.tile(Q_CMD, (episodes, 1)).tolist(), pa.list_(pa.float32())),
            "timestamp": pa.array(np.tile(TIME, episodes), pa.float32()),
            "episode_index": pa.array(np.repeat(np.arange(episodes), n), pa.int64()),
        }
    )
    parquet.write_table(table, data / "file-000.parquet")


def sage(folder: Path, packed: bool = True) -> None:
    folder.mkdir()
    (folder / "joint_list.txt").write_text("\n".join(JOINTS) + "\n")

    def rows(kind: str, columns: list[np.ndarray]) -> str:
        lines = []
        for i, t in enumerate(TIME.tolist()):
            vectors = ",".join('"[' + ", ".join(repr(v) for v in c[i].tolist()) + ']"' for c in columns)
            lines.append(f"{kind},{t * 1e6!r},{vectors}")
        return "\n".join(lines) + "\n"

    texts = {
        "control": "type,timestamp,positions\n" + rows("CONTROL", [Q_CMD]),
        "state_motor": "type,timestamp,positions,velocities,torques\n" + rows("STATE_MOTOR", [Q, Q, Q]),
    }
    for name, text in texts.items():
        if packed:
            (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"{name}.csv").write_text(text)


def bam(path: Path) -> None:
    entries = [
        {"position": a, "speed": 0.0, "load": 65530, "timestamp": t, "goal_position": b, "torque_enable": True}
        for t, a, b in zip(TIME.tolist(), Q[:, 0].tolist(), Q_CMD[:, 0].tolist(), strict=True)
    ]
    path.write_text(json.dumps({"mass": 0.5, "kp": 100, "motor": "x", "entries": entries}))


def pace(path: Path) -> None:
    import torch

    tensors = {"time": TIME, "dof_pos": Q, "des_dof_pos": Q_CMD}
    torch.save({k: torch.tensor(v, dtype=torch.float32) for k, v in tensors.items()}, path)


def write_all(folder: Path) -> dict[str, tuple[Path, Path]]:
    """By name: the path to read, and the file in it to damage."""
    made: dict[str, tuple[Path, Path]] = {}
    for ending in ("npz", "mcap", "csv"):
        path = folder / f"own.{ending}"
        write(log(), path)
        made[f"own {ending}"] = (path, path)
    made["mapping"] = (folder / "own.csv", folder / "own.toml")
    for name, content in (("plain.csv", csv_text().encode()), ("packed.csv.gz", gzip.compress(csv_text().encode()))):
        (folder / name).write_bytes(content)
        (folder / f"{name.split('.')[0]}.toml").write_text(CSV_MAPPING)
        made[name] = (folder / name, folder / name)
    sage(folder / "sage", packed=False)
    made["sage state"] = (folder / "sage", folder / "sage" / "state_motor.csv")
    made["sage joints"] = (folder / "sage", folder / "sage" / "joint_list.txt")
    ros2(folder / "ros.mcap")
    ros2(folder / "bare.mcap", chunked=False)
    made |= {n: (folder / n, folder / n) for n in ("ros.mcap", "bare.mcap")}
    lerobot(folder / "lerobot")
    file = folder / "lerobot" / "data" / "chunk-000" / "file-000.parquet"
    made["lerobot"] = (folder / "lerobot", file)
    made["lerobot info"] = (folder / "lerobot", folder / "lerobot" / "meta" / "info.json")
    bam(folder / "bam.json")
    made["bam"] = (folder / "bam.json", folder / "bam.json")
    try:
        pace(folder / "pace.pt")
        made["pace"] = (folder / "pace.pt", folder / "pace.pt")
    except ImportError:
        pass
    return made
