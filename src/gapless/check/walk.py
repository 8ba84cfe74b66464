"""A walk in the robot's own model: contract, gains and timing as the policy's files give them, physics by MuJoCo."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.policy import Contract, Estimator, Network, Runtime
from gapless.robots import Legs, RobotModel, base_joint, geom_bottoms, torque_limit
from gapless.rotations import rotate_back, tipped, up_of
from gapless.twin import plain_drives
from gapless.worlds import quiet

LONGEST_STEP = 0.002
"""Of the physics; contacts of legged robots are not believed above [s]."""
LOCKED = 1e6
"""Armature of a joint that does not move in a fraction of a second [kg m2]."""
LOW = 0.5
"""Share of its standing height below which a robot counts as fallen."""


@dataclass(frozen=True)
class Walk:
    """What became of one walk."""

    command: tuple[float, ...]
    seconds: float
    """Until it fell, or to the end [s]."""
    fell: bool
    distance: float
    """Forward, in the direction it faced at the start [m]."""
    asked: float
    """What the command asks for in that time [m]."""
    saturation: dict[str, float]
    """Share of the periods in which a joint's torque was at its limit."""
    first_torque: dict[str, float]
    """Largest torque in the first period, over its limit."""
    chatter: float
    """Share of the power of the change of actions that lies above a quarter of the control rate."""
    broke: str = ""
    """What was not finite, and when, where the physics broke."""

    @property
    def speed(self) -> float:
        """Mean, forward [m/s]."""
        return self.distance / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Trace:
    """Signals of a walk at the policy's period, in the contract's order. Shape of each: (periods, columns)."""

    observation: Array
    action: Array
    q: Array
    dq: Array
    quat: Array
    gyro: Array
    target: Array


def walk(
    network: Network,
    contract: Contract,
    robot: RobotModel,
    command: Sequence[float],
    seconds: float = 10.0,
    effort: Array | None = None,
) -> tuple[Walk, Trace]:
    """Let a policy walk.

    Args:
        network: observations (1, width) to actions; its `reset` is called first if it has one.
        contract: as the runtime would read it.
        robot: its model; joints that the contract does not name hold their home position with the model's own drives.
        command: in the order of the contract's commands.
        seconds: how long.
        effort: torque limits in the contract's order, those of contract and model unless given [N m].
    """
    scene = Scene(contract, robot, effort)
    runtime = Runtime(network, contract, np.array([command], float))
    rows, saturated, first, broke = [], [], np.zeros(len(scene.limit)), ""
    periods = max(1, round(seconds / scene.period))
    fell, done = False, 0
    for period in range(periods):
        readings = scene.read()
        target = runtime(readings)
        if not np.isfinite(runtime.action).all():
            broke, fell, done = f"the action was not finite after {period * scene.period:.2f} s", True, max(period, 1)
            break
        state = [readings[k][0] for k in ("q", "dq", "quat", "gyro")]
        rows.append((runtime.observation[0], runtime.action[0], *state, target[0]))
        peak = scene.step(target[0])
        first = peak if period == 0 else first
        saturated.append(peak >= 0.999 * scene.limit)
        done = period + 1
        if scene.broken():
            broke, fell = f"a number was not finite after {done * scene.period:.2f} s", True
        if fell or (scene.base is not None and scene.down()):
            fell = True
            break
    names = contract.joints.names
    if not rows:
        raise BadInput("the network gives an action that is not finite to the very first observation")
    trace = Trace(*(np.array(column) for column in zip(*rows, strict=True)))
    time = done * scene.period
    share = np.mean(saturated, axis=0)
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isfinite(scene.limit), first / scene.limit, 0.0)
    forward = command[0] if "vx" in contract.commands and len(command) else 0.0
    result = Walk(
        tuple(map(float, command)),
        time,
        fell,
        scene.forward() if scene.base is not None and not broke else 0.0,
        forward * time,
        dict(zip(names, share.tolist(), strict=True)),
        dict(zip(names, relative.tolist(), strict=True)),
        chatter(trace.action),
        broke,
    )
    return result, trace


def chatter(actions: Array) -> float:
    """Share of the power of the change of actions (periods, joints) above a quarter of the rate they come at."""
    change = np.diff(np.asarray(actions, float), axis=0)
    if len(change) < 8:
        return 0.0
    power = (np.abs(np.fft.rfft(change - change.mean(axis=0), axis=0)) ** 2).sum(axis=1)
    return float(power[len(power) // 2 :].sum() / max(power.sum(), 1e-12))


class Scene:
    """The robot's model with the contract's gains as servos, which MuJoCo integrates implicitly, as fast drives would."""

    def __init__(self, contract: Contract, robot: RobotModel, effort: Array | None):
        joints, kind = contract.joints, contract.action.kind
        if contract.timing.control_dt is None:
            raise BadInput("the contract does not say the period of the policy: timing.control_dt")
        if kind == "position" and (joints.kp is None or joints.kd is None):
            raise BadInput("the contract does not say the gains: joints.kp and joints.kd")
        self.model = model = copy.deepcopy(robot.model)
        plain_drives(model)
        order = contract.columns(robot.joints)
        drives = [robot.drives[i] for i in order]
        self._drives = robot.drives
        self.period = contract.timing.control_dt
        step = min(LONGEST_STEP, contract.timing.sim_dt or LONGEST_STEP)
        self._substeps = max(1, round(self.period / step))
        model.opt.timestep = self.period / self._substeps
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self._qpos, self._dof = (np.array([getattr(d, k) for d in drives]) for k in ("qpos", "dof"))
        self._control = np.array([d.control for d in drives])
        self._actuator = np.array([d.actuator for d in drives])
        modelled = np.array([torque_limit(robot.model, d.actuator) for d in drives])
        stated = np.array([np.inf if e is None else e for e in joints.effort_limit or [None] * len(drives)])
        self.limit = np.minimum(modelled, stated) if effort is None else np.asarray(effort, float)
        for i, a in enumerate(self._actuator):
            _servo(model, a, kind, float(joints.kp[i]) if joints.kp else 0.0, float(joints.kd[i]) if joints.kd else 0.0)
            if np.isfinite(self.limit[i]):
                model.actuator_forcelimited[a], model.actuator_forcerange[a] = 1, (-self.limit[i], self.limit[i])
        self.data = data = mujoco.MjData(model)
        data.qpos[:] = robot.home
        data.ctrl[:] = robot.home_command
        if joints.default_pos is not None:
            data.qpos[self._qpos] = joints.default_pos
        self.default = data.qpos[self._qpos].copy()
        base = base_joint(model)
        self.base = None if base is None else int(model.jnt_qposadr[base])
        self._base_dof = 0 if base is None else int(model.jnt_dofadr[base])
        mujoco.mj_forward(model, data)
        if self.base is not None:
            self._stand(int(model.jnt_bodyid[base]))
        self._frame = _frame_of(contract, model)
        self._estimate = Estimator(robot, contract) if any(t.kind == "tip" for t in contract.observation.terms) else None
        self._start = data.qpos.copy()
        mujoco.mj_forward(model, data)

    def _stand(self, body: int, height: float = 0.001) -> None:
        """Put the lowest point of the robot that high above the ground [m]."""
        model, data = self.model, self.data
        own = (model.body_rootid[model.geom_bodyid] == model.body_rootid[body]) & (
            (model.geom_contype | model.geom_conaffinity) > 0
        )
        if own.any() and self.base is not None:
            data.qpos[self.base + 2] += height - geom_bottoms(model, data)[own].min()

    def put(
        self, q: Array, dq: Array, quat: Array, gyro: Array, velocity: Array | None, legs: Legs | None, sink: float
    ) -> None:
        """Put the robot into a state that sensors saw: on the ground with its lowest point, its speed from its legs.

        Args:
            q: positions in the contract's order, shape (joints,); so are `dq`.
            dq: speeds.
            quat: of the base, without heading.
            gyro: of the base.
            velocity: of the base in its own axes, where it is known.
            legs: that tell it otherwise.
            sink: how deep its lowest point is in the ground [m].
        """
        data, model = self.data, self.model
        data.qpos[:], data.qvel[:] = self._start, 0.0
        data.qpos[self._qpos], data.qvel[self._dof] = q, dq
        if self.base is not None:
            data.qpos[self.base + 3 : self.base + 7] = quat
            mujoco.mj_kinematics(model, data)
            self._stand(int(model.jnt_bodyid[base_joint(model)]), -sink)
            if velocity is None and legs is not None:
                whole = {d.name: (data.qpos[d.qpos], data.qvel[d.dof]) for d in self._drives}
                both = np.array([whole[d.name] for d in self._drives]).T
                velocity = legs.velocity(both[:1], both[1:], quat[None], gyro[None])[0]
            turn = np.zeros(3)
            if velocity is not None:
                mujoco.mju_rotVecQuat(turn, velocity, quat)
            data.qvel[self._base_dof : self._base_dof + 3] = turn
            data.qvel[self._base_dof + 3 : self._base_dof + 6] = gyro
        data.qacc_warmstart[:] = 0.0
        mujoco.mj_forward(model, data)

    def sink(self) -> float:
        """How deep the robot stands in the ground: its joints locked, it settles for 0.2 s [m]."""
        if self.base is None:
            return 0.0
        model = copy.deepcopy(self.model)
        free = np.arange(self._base_dof, self._base_dof + 6)
        model.dof_armature[np.setdiff1d(np.arange(model.nv), free)] = LOCKED
        data = mujoco.MjData(model)
        data.qpos[:] = self._start
        with quiet():
            for _ in range(round(0.2 / model.opt.timestep)):
                mujoco.mj_step(model, data)
        return float(max(0.0, -data.contact.dist.min())) if data.ncon else 0.0

    def read(self) -> dict[str, Array]:
        """Readings as sensors would give them, in the contract's order. Shape of each: (1, columns)."""
        data = self.data
        readings = {"q": data.qpos[self._qpos][None], "dq": data.qvel[self._dof][None]}
        if self._estimate is not None:
            whole = {"q": data.qpos[[d.qpos for d in self._drives]], "dq": data.qvel[[d.dof for d in self._drives]]}
            readings["tip"] = self._estimate({name: value[None] for name, value in whole.items()})["tip"]
        if self.base is None:
            return readings | {"quat": np.array([[1.0, 0, 0, 0]]), "gyro": np.zeros((1, 3))}
        if self._frame is None:
            quat, gyro = (
                data.qpos[self.base + 3 : self.base + 7].copy(),
                data.qvel[self._base_dof + 3 : self._base_dof + 6].copy(),
            )
        else:
            kind, i = self._frame
            both, quat = np.zeros(6), np.zeros(4)
            mujoco.mj_objectVelocity(self.model, data, kind, i, both, 1)
            rotation = data.site_xmat[i] if kind == mujoco.mjtObj.mjOBJ_SITE else data.xmat[i]
            mujoco.mju_mat2Quat(quat, rotation)
            gyro = both[:3].copy()
        velocity = rotate_back(data.qpos[self.base + 3 : self.base + 7], data.qvel[self._base_dof : self._base_dof + 3])
        return readings | {"quat": quat[None], "gyro": gyro[None], "velocity": velocity[None]}

    def step(self, target: Array) -> Array:
        """One period of the policy; the largest torque of each joint in it [N m]."""
        self.data.ctrl[self._control] = target
        peak = np.zeros(len(self.limit))
        with quiet():
            for _ in range(self._substeps):
                mujoco.mj_step(self.model, self.data)
                np.maximum(peak, np.abs(self.data.actuator_force[self._actuator]), out=peak)
        return peak

    def broken(self) -> bool:
        return not np.isfinite(self.data.qpos).all() or bool(self.data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number)

    def down(self) -> bool:
        """Whether the robot lies: tipped by 60 degrees, or half as high as it stood."""
        assert self.base is not None
        quat = self.data.qpos[self.base + 3 : self.base + 7]
        return bool(tipped(up_of(quat))) or bool(self.data.qpos[self.base + 2] < LOW * self._start[self.base + 2])

    def forward(self) -> float:
        """How far it went in the direction that it faced [m]."""
        assert self.base is not None
        moved = self.data.qpos[self.base : self.base + 3] - self._start[self.base : self.base + 3]
        return float(rotate_back(self._start[self.base + 3 : self.base + 7], moved)[0])


def _servo(model: mujoco.MjModel, actuator: int, kind: str, kp: float, kd: float) -> None:
    """Make an actuator what the contract commands: a position servo, a velocity servo, or a torque."""
    model.actuator_dyntype[actuator] = mujoco.mjtDyn.mjDYN_NONE
    model.actuator_gaintype[actuator] = mujoco.mjtGain.mjGAIN_FIXED
    model.actuator_biastype[actuator] = mujoco.mjtBias.mjBIAS_AFFINE
    model.actuator_gear[actuator] = 0.0
    model.actuator_gear[actuator, 0] = 1.0
    model.actuator_ctrllimited[actuator] = 0
    model.actuator_gainprm[actuator] = 0.0
    model.actuator_biasprm[actuator] = 0.0
    gain = {"position": kp, "velocity": kd, "torque": 1.0}[kind]
    model.actuator_gainprm[actuator, 0] = gain
    if kind != "torque":
        model.actuator_biasprm[actuator, 1:3] = (-kp if kind == "position" else 0.0), -kd


def _frame_of(contract: Contract, model: mujoco.MjModel) -> tuple[int, int] | None:
    """The site or body that the contract says the IMU sits on; None for the base."""
    frame = contract.conventions.imu_frame
    if frame is None:
        return None
    for kind in (mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_BODY):
        if (i := mujoco.mj_name2id(model, kind, frame)) >= 0:
            return kind, i
    return None
