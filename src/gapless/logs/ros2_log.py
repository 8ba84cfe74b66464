"""A log from the topics of a ROS 2 bag, whatever container they came in: which topic is which signal, of which joints, when."""

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gapless.errors import BadInput, must_exist
from gapless.logs import ros2
from gapless.logs.assemble import finish
from gapless.logs.log import AXES, Log, Signal
from gapless.logs.mapping import Mapping, TopicUse
from gapless.logs.trajectory import Order, commanded

TRAJECTORY, CONTROLLER = "trajectory_msgs/JointTrajectory", "control_msgs/JointTrajectoryControllerState"
STATE = {"motor_state.q": "q", "motor_state.dq": "dq", "motor_state.tau_est": "tau"}
STATE |= {"imu_state.quaternion": "quat", "imu_state.gyroscope": "gyro", "imu_state.accelerometer": "acc"}
ORDER = {"motor_cmd.q": "q_cmd", "motor_cmd.tau": "tau_ff", "motor_cmd.kp": "kp", "motor_cmd.kd": "kd"}
FIELDS: dict[str, dict[str, str]] = {
    ros2.JOINT_STATE: {"position": "q", "velocity": "dq", "effort": "tau"},
    "unitree_go/LowState": STATE,
    "unitree_hg/LowState": STATE,
    "unitree_go/LowCmd": ORDER,
    "unitree_hg/LowCmd": ORDER,
    CONTROLLER: {"reference.positions": "q_cmd", "desired.positions": "q_cmd"}
    | {"feedback.positions": "q", "actual.positions": "q", "feedback.velocities": "dq", "actual.velocities": "dq"},
    TRAJECTORY: {"points.positions": "q_cmd"},
    "control_msgs/MultiDOFCommand": {"values": "q_cmd"},
    "control_msgs/JointJog": {"velocities": "dq_cmd"},
    "sensor_msgs/Imu": {"orientation": "quat", "angular_velocity": "gyro", "linear_acceleration": "acc"},
    "std_msgs/Float64MultiArray": {},
    "std_msgs/Float32MultiArray": {},
}
"""Messages that are read, those trusted most first, and what their fields are unless a mapping says it."""
LATER = {CONTROLLER: ("q", "dq")}
"""What others are trusted for first: a controller repeats the state that it was given."""
COMMANDS = {"q": "q_cmd", "dq": "dq_cmd", "tau": "tau_cmd"}
COMMAND_WORDS = ("cmd", "command", "desired", "target", "goal", "reference", "setpoint")
"""A JointState topic with one of these words in its name holds commands."""
NAMES = {ros2.JOINT_STATE: "name", "control_msgs/MultiDOFCommand": "dof_names"}
"""The field of the joints' names, where it is not joint_names."""
EXTRA = {"sensor_msgs/Imu": ("orientation_covariance",), TRAJECTORY: ("points.velocities",)}
"""Fields that are read to understand others."""
SEEN = 10
"""Messages of other joints than most, from which on they are no stray ones."""
FAR_APART = 3_600_000_000_000
"""ns between a device's clock and the host's from which on they count as two clocks."""


@dataclass
class Group:
    """The messages of a topic that have the same joints and as many numbers. Buffers grow in place, to save memory."""

    names: tuple[str, ...]
    widths: dict[str, int]
    stamps: array = field(default_factory=lambda: array("q"))
    log_times: array = field(default_factory=lambda: array("q"))
    delays: array = field(default_factory=lambda: array("q"))
    """Of the points of trajectories [ns]."""
    values: dict[str, array] = field(default_factory=dict)

    def numbers(self, name: str) -> np.ndarray:
        """Shape: (messages, numbers)."""
        return np.frombuffer(self.values[name]).reshape(len(self.log_times), self.widths[name])


@dataclass
class Topic:
    """What was read of a topic so far."""

    kind: str
    known: ros2.Definitions
    use: TopicUse
    groups: dict[tuple[object, ...], Group] = field(default_factory=dict)

    @property
    def main(self) -> Group:
        """The messages that count: those that say most."""
        return max(self.groups.values(), key=lambda g: len(g.log_times) * max(1, sum(g.widths.values())))

    @property
    def beside(self) -> dict[str, Group]:
        """Joints that are in messages of their own, as arm and gripper that publish to one topic, and these messages."""
        others = sorted((g for g in self.groups.values() if len(g.log_times) >= SEEN), key=lambda g: -len(g.log_times))
        apart = [(n, g) for g in others for n in g.names if n not in self.main.names]
        return dict(reversed(apart)) if self.kind == ros2.JOINT_STATE and not self.use.joints else {}


class Bag:
    """Collects messages, then makes a log of them."""

    def __init__(self, path: Path, mapping: Mapping):
        self.path, self.mapping = path, mapping
        self.topics: dict[str, Topic] = {}
        self.others: dict[str, str] = {}
        """Topics that are not read, and their types."""

    def add(self, name: str, kind: str, definition: str, log_times: Sequence[int], data: Sequence[bytes]) -> None:
        """Take the next messages of a topic."""
        kind, stated = ros2.plain_type(kind), self.mapping.topics
        if kind not in FIELDS or (stated and name not in stated):
            self.others[name] = kind
            return
        place = f"{self.path}: topic {name}"
        if name not in self.topics:
            use = stated.get(name) or TopicUse(_default(name, kind))
            try:
                self.topics[name] = Topic(kind, ros2.definitions(kind, definition), use)
            except BadInput as error:
                raise BadInput(f"{place}: {error}") from None
        topic = self.topics[name]
        wanted = [*topic.use.fields, *EXTRA.get(kind, ())] if topic.use.fields else ["data"]
        first = sum(len(g.log_times) for g in topic.groups.values())
        try:
            times = np.array(log_times, np.int64)
            for part in ros2.decode(data, kind, topic.known, NAMES.get(kind, "joint_names")):
                _store(topic, part, wanted, times)
        except (ValueError, OverflowError, struct.error, UnicodeDecodeError) as error:
            raise BadInput(f"{place}: one of the messages from {first} on is damaged: {error}") from None

    def log(self, format: str, files: list[Path]) -> Log:
        """The log, with notes on what was assumed and left out."""
        must_exist(f"topic of {self.path}", self.mapping.topics, {**self.topics, **self.others})
        notes = [f"ignored topics: {', '.join(sorted(self.others)[:12])}"] if self.others else []
        uses = self.chosen(notes)
        if not uses:
            held = ", ".join(f"{n} ({k})" for n, k in sorted({**self.others, **self.kinds}.items())[:12]) or "none"
            raise BadInput(
                f"{self.path}: no topic is known to hold joints; its topics: {held}: say in a mapping what they are "
                "(`gapless init` drafts one)"
            )
        clocks = self._clocks(uses, notes)
        signals: list[Signal] = []
        for name, fields in uses.items():
            topic, group = self.topics[name], self.topics[name].main
            every = sum(len(g.log_times) for g in topic.groups.values() if g not in topic.beside.values())
            if every > len(group.log_times) and topic.kind != TRAJECTORY:
                left = every - len(group.log_times)
                notes.append(f"{name}: {left} of {every} messages have other joints or fields than most, and are not used")
            for path, signal in fields.items():
                signals.append(self._signal(name, topic, path, signal, *clocks[name], notes))
        return finish(self.path, format, signals, notes, self.mapping, files)

    @property
    def kinds(self) -> dict[str, str]:
        """Type by topic, of those that were read."""
        return {name: topic.kind for name, topic in self.topics.items()}

    def chosen(self, notes: list[str], first: bool = False) -> dict[str, dict[str, str]]:
        """Field to signal, for each topic that is used; one topic for each signal.

        first: where two topics say the same, whether the first of them is taken; else that is refused.
        """
        best: dict[str, tuple[int, str, str]] = {}
        for name, topic in self.topics.items():
            if not topic.use.fields:
                notes.append(f"{name} ({topic.kind}) is not used, because it names no joints: a mapping can say what it is")
            for path, signal in topic.use.fields.items():
                if not topic.main.widths.get(path):
                    continue
                if (
                    topic.kind == "sensor_msgs/Imu"
                    and signal == "quat"
                    and topic.main.numbers("orientation_covariance")[0, 0] == -1
                ):
                    continue
                rank = list(FIELDS).index(topic.kind) + len(FIELDS) * (signal in LATER.get(topic.kind, ()))
                before = best.get(signal)
                if before and before[0] == rank and signal not in AXES and not first:
                    raise BadInput(
                        f"{self.path}: topics {before[1]} and {name} both hold {signal}: say in the [topics] of a mapping "
                        "which one is used (`gapless init` drafts one)"
                    )
                if before:
                    loser = before[1] if rank < before[0] else name
                    notes.append(f"{signal} is in two topics; that of {loser} is not used")
                if not before or rank < before[0]:
                    best[signal] = (rank, name, path)
        uses: dict[str, dict[str, str]] = {}
        for signal, (_, name, path) in best.items():
            uses.setdefault(name, {})[path] = signal
        return uses

    def _clocks(self, uses: dict[str, dict[str, str]], notes: list[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """When each message says it was made, and when the host recorded it [s], by topic."""
        groups = {name: self.topics[name].main for name in uses}
        epoch = min(min(g.log_times) for g in groups.values())
        notes.append(f"time: 0 s is {epoch} ns of the host's clock")
        bare = [name for name, g in groups.items() if not np.any(g.stamps)]
        out = {}
        for name, group in groups.items():
            recorded = np.array(group.log_times, np.int64)
            stamps = np.array(group.stamps, np.int64)
            if name in bare:
                notes.append(f"{name}: messages are not stamped; time is when the host recorded them")
                stamps = recorded
            else:
                apart = int(stamps[0]) - epoch if abs(int(stamps[0]) - epoch) > FAR_APART else 0
                if bare:  # one clock for all, and it can only be the host's
                    apart = int(np.median(stamps - recorded))
                # Two clocks may be decades apart: their difference at the first message is removed and noted.
                notes.extend([f"{name}: stamps are {apart} ns from the host's clock, which is taken off"] if apart else [])
                stamps = stamps - apart
            out[name] = ((stamps - epoch).astype(float) * 1e-9, (recorded - epoch).astype(float) * 1e-9)
        return out

    def _signal(
        self, name: str, topic: Topic, path: str, signal: str, time: np.ndarray, host: np.ndarray, notes: list[str]
    ) -> Signal:
        group = topic.main
        if topic.kind == TRAJECTORY:
            return self._trajectory(name, topic, float(time[0] - host[0]), signal, notes)
        values = group.numbers(path)
        if signal in AXES:
            if signal == "quat" and path == "orientation":
                notes.append(f"{name}: orientation converted from xyzw to wxyz")
                values = values[:, [3, 0, 1, 2]]
            return Signal(signal, time, values, AXES[signal], host)
        joints = topic.use.joints or group.names or self.mapping.joint_names
        if not joints:
            joints = tuple(f"motor{i}" for i in range(values.shape[1]))
            notes.append(f"{name}: its {values.shape[1]} motors have no names; numbered in their order")
        if len(joints) > values.shape[1]:
            raise BadInput(
                f"{self.path}: topic {name}: {len(joints)} joints are named, but {path} has {values.shape[1]} numbers"
            )
        if len(joints) < values.shape[1]:
            notes.append(f"{name}: the last {values.shape[1] - len(joints)} of its {values.shape[1]} numbers are not used")
        values = values[:, : len(joints)]
        for joint, other in topic.beside.items() if topic.main.names else ():
            if other.widths.get(path):
                notes.append(f"{name}: {joint} is in messages of its own: its {path} is taken at the others' times")
                values = np.column_stack([values, _at(group, other, path, joint, hold=signal in COMMANDS.values())])
                joints = (*joints, joint)
        return Signal(signal, time, values, joints, host)

    def _trajectory(self, name: str, topic: Topic, shift: float, signal: str, notes: list[str]) -> Signal:
        """What a controller makes of trajectories: the way from each point to the next, until another trajectory comes."""
        names = topic.main.names
        epoch = min(min(t.main.log_times) for t in self.topics.values() if t.groups)
        orders = []
        for group in (g for g in topic.groups.values() if g.names == names and g.widths["points.positions"]):
            points, many = group.numbers("points.positions"), len(names)
            speeds = group.numbers("points.velocities") if group.widths["points.velocities"] == points.shape[1] else None
            delays = np.frombuffer(group.delays, np.int64).reshape(len(points), -1) * 1e-9
            for i, recorded in enumerate(group.log_times):
                speed = None if speeds is None else speeds[i].reshape(-1, many)
                orders.append(Order((recorded - epoch) * 1e-9 + shift, delays[i], points[i].reshape(-1, many), speed))
        time, values, how = commanded(orders)
        notes.append(f"{name}: {len(orders)} trajectories; {how}")
        return Signal(signal, time, values, topic.use.joints or names)


def _at(group: Group, other: Group, path: str, joint: str, hold: bool) -> np.ndarray:
    """What other messages say of a joint, at the times of a group: between two of them, or, of commands, the last."""
    stamped = np.any(group.stamps) and np.any(other.stamps)
    times, theirs = (np.array(g.stamps if stamped else g.log_times, np.int64) for g in (group, other))
    order = np.argsort(theirs, kind="stable")
    theirs, values = theirs[order] - times[0], other.numbers(path)[order, other.names.index(joint)]
    times = times - times[0]
    if hold:
        return values[np.maximum(np.searchsorted(theirs, times, side="right") - 1, 0)]
    return np.interp(times, theirs, values)


def _default(name: str, kind: str) -> dict[str, str]:
    """What the fields of a topic are, by its type and its name."""
    fields = FIELDS[kind]
    if kind == ros2.JOINT_STATE and any(word in name.lower() for word in COMMAND_WORDS):
        return {path: COMMANDS[signal] for path, signal in fields.items()}
    return fields


def _store(topic: Topic, part: ros2.Decoded, wanted: Sequence[str], times: np.ndarray) -> None:
    """Add messages of one layout to the group that they belong to."""
    names = part.text(NAMES.get(topic.kind, "joint_names"))
    values = {path: part.values(path) for path in wanted}
    delays = part.nanoseconds("points.time_from_start") if topic.kind == TRAJECTORY else np.empty((len(part.rows), 0), np.int64)
    for path, numbers in values.items():
        if names and topic.kind not in ("sensor_msgs/Imu", TRAJECTORY) and numbers.shape[1] not in (0, len(names)):
            raise ValueError(f"{numbers.shape[1]} values of {path} for {len(names)} joints")
        if topic.kind == TRAJECTORY and numbers.shape[1] not in (0, len(names) * delays.shape[1]):
            raise ValueError(f"{numbers.shape[1]} values of {path} for {delays.shape[1]} points of {len(names)} joints")
    widths = {path: numbers.shape[1] for path, numbers in values.items()}
    group = topic.groups.setdefault((names, tuple(widths.items())), Group(names, widths))
    group.log_times.frombytes(np.ascontiguousarray(times[part.rows]).tobytes())
    stamped = "header.stamp.sec" in part.layout.numbers
    stamps = part.nanoseconds("header.stamp")[:, 0] if stamped else np.zeros(len(part.rows), np.int64)
    group.stamps.frombytes(stamps.tobytes())
    group.delays.frombytes(np.ascontiguousarray(delays).tobytes())
    for path, numbers in values.items():
        group.values.setdefault(path, array("d")).frombytes(np.ascontiguousarray(numbers).tobytes())
