"""Environment: worlds and a task together; actions in, observations of two groups and rewards by term out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import gapless
from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn import mirror
from gapless.learn.scene import Scene
from gapless.learn.task import Task
from gapless.policy import (
    Action,
    Contract,
    Conventions,
    Estimator,
    Gait,
    Joints,
    Observation,
    Observer,
    RobotIdentity,
    Source,
    Term,
    Timing,
    targets,
)
from gapless.robots import Drive, imu_of
from gapless.rotations import multiply
from gapless.twin import Belief, Motor, Space, Twin
from gapless.worlds import Worlds

Frame = NDArray[np.float32]
JOINTS = ("q", "dq", "tau")
KINDS = {"q": "position", "dq": "velocity", "tau": "torque"}
SPREAD = 3.0
"""Parameters are shown to the critic in units of a real mismatch, up to this many."""


@dataclass(frozen=True)
class Step:
    """What one control period brought. Shape of each array: (n, ...)."""

    observation: dict[str, Frame]
    """By group: "policy" holds what a robot can know, "critic" anything."""
    reward: Array
    terms: Mapping[str, Array]
    """The reward's parts, by name; they add up to it."""
    metrics: Mapping[str, Array]
    """What the task offers to watch, before episodes that ended start anew; NaN where physics broke."""
    failed: NDArray[np.bool_]
    """Episodes that ended as the task said, or as physics broke."""
    timeout: NDArray[np.bool_]
    """Episodes that ended because their time was over, or the ground."""
    final: dict[str, Frame] | None = None
    """Where episodes ended and `keep_final` is set: the observation before they started anew."""


class Environment:
    """N worlds that play a task.

        environment = Environment(Twin.load("quadruped"), task, 256, belief, np.random.default_rng(0))
        observation = environment.reset()
        step = environment.step(actions)

    Worlds whose episode ends start anew with new parameters in the same step.
    """

    def __init__(
        self,
        twin: Twin,
        task: Task,
        n: int,
        belief: Belief | None,
        rng: np.random.Generator,
        threads: int = 0,
        contract: Contract | None = None,
    ):
        """Build the worlds.

        Args:
            twin: the robot.
            task: what it is to do.
            n: number of worlds.
            belief: what parameters are drawn from; nominal unless given.
            rng: source of all randomness.
            threads: of physics, 0 for one per core.
            contract: of a policy that was trained elsewhere; what the task says unless given.
        """
        self.twin, self.task, self.n = twin, task, n
        self.contract = build_contract(twin, task) if contract is None else contract
        _check_drives(twin, self.contract)
        self._columns = self.contract.columns(twin.joints)
        kinds = {t.kind for t in self.contract.observation.terms}
        usual = ("q", "dq", "quat", "gyro") if twin.floating else ("q", "dq")
        signals = (*usual, *(s for s in ("tau", "acc") if s in kinds))
        self.worlds = Worlds(twin, n, belief, rng.spawn(1)[0], signals, threads)
        self._rng = rng
        self.scene = Scene(twin, self.worlds, Gait(self.contract, n), len(task.commands), len(self.contract.action.joints))
        self._observer = Observer(self.contract, n)
        self._estimate = Estimator(twin.robot, self.contract)
        plain = tuple(dataclasses.replace(t, history=1, lag=0) for t in self.contract.observation.terms)
        self._truth = Observer(dataclasses.replace(self.contract, observation=Observation(plain)), n)
        self._controls = [twin.drives[c].control for c in self._columns]
        self.quantities, self._by_quantity = _grouping(self.worlds.belief.space)
        self._encoders = [i for i, name in enumerate(self.worlds.belief.space.names) if name.startswith("offset.encoder")]
        self._parameters = np.zeros((n, len(self.quantities)))
        self._places, self._dofs = [d.qpos for d in twin.drives], [d.dof for d in twin.drives]
        self._limits = np.array([(d.low, d.high) for d in twin.drives]).T
        self._until = np.full(n, np.inf)
        self._ask_at = np.full(n, np.inf)
        self._push_at = np.full(n, np.inf)
        self.hardness = 1.0
        """How much of the task's pushes is given, and how hard the ground is at most, 0 to 1: a curriculum raises it."""
        self.ground_hardness: Array = np.zeros(n)
        """Where each episode started, 0 to 1; 0 on a floor."""
        self._command = np.tile(self.worlds.home_command, (n, 1))
        self._fresh = np.ones(n, bool)  # no previous target yet: the action filter starts unfiltered
        self.keep_final = False
        """Whether a step also gives the last observation of episodes that end in it."""

    def reset(self, spread: bool = False) -> dict[str, Frame]:
        """Start all episodes; with `spread` they end at different times, as those of a long run do."""
        self._start(np.arange(self.n))
        if spread:
            self._until = self._rng.uniform(0.0, self.task.episode.seconds, self.n)
        return self._observe()

    def step(self, action: ArrayLike) -> Step:
        """Advance every world by one control period under actions of shape (n, actions)."""
        scene = self.scene
        scene.last_action, scene.action = scene.action, np.array(action, float)
        self._command[:, self._controls] = self._targets()
        self._push()
        self.worlds.step(self._command)
        scene.advance()
        scene.gait.advance(scene.command, self._readings() if scene.gait.wake else {})
        broken = self.worlds.failed
        scene.failed = self.task.done(scene)
        failed = scene.failed | broken
        terms, metrics = dict(self.task.reward(scene)), self._metrics(broken)
        now = scene.time + scene.dt / 2  # sums of periods round
        over = now >= self._until
        if scene.ground is not None:
            over |= scene.ground.beyond(scene.position)  # nothing that the task can blame
        timeout = over & ~failed
        self._check(terms)
        # by period; physics that broke says nothing about the task
        terms = {name: np.where(broken, 0.0, term * scene.dt) for name, term in terms.items()}
        ended = failed | timeout
        due = np.flatnonzero((now >= self._ask_at) & ~ended)
        if len(due):
            self._ask(due)
        reward = np.sum([np.zeros(self.n), *terms.values()], axis=0)
        final = None
        if ended.any():
            final = self._observe(keep=False) if self.keep_final else None
            self._start(np.flatnonzero(ended))
        return Step(self._observe(), reward, terms, metrics, failed, timeout, final)

    def _targets(self) -> Array:
        """Joint targets of this period. Shape: (n, joints)."""
        scene = self.scene
        unfiltered = targets(self.contract, scene.action, None, scene.gait, scene.command)
        if self.contract.action.filter is None:
            return unfiltered
        last = np.where(self._fresh[:, None], unfiltered, self._command[:, self._controls])
        self._fresh[:] = False
        return targets(self.contract, scene.action, last, scene.gait, scene.command)

    def _metrics(self, broken: Bools) -> dict[str, Array]:
        """What the task offers to watch, NaN where physics broke."""
        metrics = self.task.metrics(self.scene) if hasattr(self.task, "metrics") else {}
        return {name: np.where(broken, np.nan, value) for name, value in metrics.items()}

    def _check(self, terms: Mapping[str, Array]) -> None:
        if "falls" in terms:
            raise BadInput("a reward term cannot be called 'falls', which is how often robots fall: give it another name")
        for name, term in terms.items():
            if np.shape(term) != (self.n,):
                raise BadInput(f"reward term {name!r} has shape {np.shape(term)}; expected one number a world, ({self.n},)")
        if np.isfinite(sum(terms.values(), np.zeros(self.n))).all():
            return
        for name, term in terms.items():
            wrong = ~np.isfinite(term) & ~self.worlds.failed
            if wrong.any():
                world = int(np.argmax(wrong))
                raise BadInput(
                    f"reward term {name!r} is {term[world]} in world {world}: look for a division or a logarithm in it"
                )

    def _start(self, ids: NDArray[np.int64]) -> None:
        """Begin new episodes."""
        episode, scene, worlds, rng = self.task.episode, self.scene, self.worlds, self._rng
        k = len(ids)
        qpos, qvel = np.tile(worlds.home, (k, 1)), np.zeros((k, self.twin.model.nv))
        places, dofs = self._places, self._dofs
        q = qpos[:, places] + rng.uniform(-1, 1, (k, len(places))) * episode.start_q
        qpos[:, places] = np.clip(q, *self._limits)
        qvel[:, dofs] = rng.uniform(-1, 1, (k, len(dofs))) * episode.start_dq
        if scene.ground is not None:
            self._place(ids, qpos)
        if scene.has_legs:
            at = scene.base_qpos
            qvel[:, scene.base_dof : scene.base_dof + 2] = rng.uniform(-1, 1, (k, 2)) * episode.start_dq
            qpos[:, at + 2] = 0.0
            _, _, low = scene.feet_at(qpos[:, places], qvel[:, dofs], qpos[:, at + 3 : at + 7], qpos[:, at : at + 3])
            qpos[:, at + 2] = -low.min(axis=1)  # the lowest foot just touches the ground
        worlds.reset(ids, qpos, qvel)
        scene.update(ids)
        scaled = worlds.belief.space.to_scaled(worlds.values[ids])
        # encoder zeros are mirrored joint by joint, which a mean is not: show how large they are
        scaled[:, self._encoders] = np.abs(scaled[:, self._encoders])
        self._parameters[ids] = np.clip(scaled, -SPREAD, SPREAD) @ self._by_quantity
        which = np.zeros(self.n, bool)
        which[ids] = True
        self._observer.reset(which)
        self._truth.reset(which)
        scene.gait.reset(which)
        self._fresh[ids] = True
        scene.time[ids] = 0.0
        scene.action[ids] = scene.last_action[ids] = 0.0
        self._until[ids] = episode.seconds
        self._push_at[ids] = self._next_push(k) if episode.push else np.inf
        self._ask(ids)

    def _place(self, ids: NDArray[np.int64], qpos: Array) -> None:
        """Put robots on level places of the ground, turned any way: shape of qpos (k, nq)."""
        ground, at, rng = self.scene.ground, self.scene.base_qpos, self._rng
        assert ground is not None
        place, self.ground_hardness[ids] = ground.start(rng.uniform(0.0, self.hardness, len(ids)), rng)
        qpos[:, at : at + 2] = place
        qpos[:, at + 2] += ground.height(*place.T)
        half = rng.uniform(-np.pi, np.pi, len(ids)) / 2
        yaw = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=-1)
        qpos[:, at + 3 : at + 7] = multiply(yaw, qpos[:, at + 3 : at + 7])

    def _ask(self, ids: NDArray[np.int64]) -> None:
        """Give new commands."""
        command = np.asarray(self.task.command(self.scene, ids, self._rng), float)
        if command.shape != (len(ids), self.scene.command.shape[1]):
            raise BadInput(f"the task's command has shape {command.shape}; expected {(len(ids), self.scene.command.shape[1])}")
        self.scene.command[ids] = command
        self._ask_at[ids] = self.scene.time[ids] + self.task.episode.command_every

    def _next_push(self, k: int) -> Array:
        return self._rng.uniform(0.5, 1.5, k) * self.task.episode.push_every

    def _push(self) -> None:
        due = np.flatnonzero(self.scene.time >= self._push_at)
        if not len(due):
            return
        angle = self._rng.uniform(0, 2 * np.pi, len(due))
        size = self.task.episode.push * self.hardness * self._rng.random(len(due))
        kick = np.stack([size * np.cos(angle), size * np.sin(angle), np.zeros(len(due))], axis=-1)
        self.worlds.push(kick, due)
        self._push_at[due] += self._next_push(len(due))

    def _readings(self) -> dict[str, Array]:
        """What sensors and estimators on the robot give, joints in the contract's order."""
        readings, order = self.worlds.readings, self._columns
        return {**readings, **self._estimate(readings), **{s: readings[s][:, order] for s in JOINTS if s in readings}}

    def _observe(self, keep: bool = True) -> dict[str, Frame]:
        """What both groups see now; without `keep` no history remembers it."""
        scene, readings, order = self.scene, self._readings(), self._columns
        true = {"q": scene.q[:, order], "dq": scene.dq[:, order]}
        if scene.floating:
            true |= {"quat": scene.quat, "gyro": scene.turn, "velocity": scene.velocity}
        if "tip" in readings:
            true["tip"] = self._estimate({"q": scene.q, "dq": scene.dq})["tip"]
        asked = scene.command, scene.action, scene.gait, keep
        critic = np.concatenate([self._truth({**readings, **true}, *asked), *self._privileged()], axis=1, dtype=np.float32)
        return {"policy": self._observer(readings, *asked), "critic": critic}

    def _privileged(self) -> list[Array]:
        """What only a simulator knows: velocity, height, feet, and the world's parameters."""
        scene = self.scene
        parts: list[Array] = [self._parameters]
        if scene.has_legs:
            parts = [scene.foot_height * 10, scene.contact.astype(float), *parts]
        if scene.floating:
            parts = [scene.velocity * 2, (scene.height[:, None] - scene.home_height) * 10, *parts]
        if hasattr(self.task, "privileged"):
            parts.append(self.task.privileged(scene))
        return parts

    def mirror(self) -> tuple[mirror.Mirror, mirror.Mirror, mirror.Mirror] | None:
        """How the two groups and the action are mirrored left to right; None where that is not known."""
        by_joint = mirror.joints(self.twin)
        policy = mirror.observation(self.contract, self.twin)
        truth = mirror.observation(self._truth.contract, self.twin)
        own = hasattr(self.task, "privileged")  # nobody knows what those become
        if by_joint is None or policy is None or truth is None or own or not self.scene.floating:
            return None
        parts = [truth, mirror.straight(mirror.VECTOR), mirror.straight((1.0,))]
        if self.scene.has_legs:
            feet = mirror.feet(self.scene.legs.home)
            if feet is None:
                return None
            parts += [feet, feet]
        parts.append(mirror.parameters(self.quantities))
        return policy, mirror.joined(parts), by_joint


def _check_drives(twin: Twin, contract: Contract) -> None:
    """Raise unless the robot's drives take what a policy puts out, as often as it does."""
    for d in (d for d in twin.drives if d.name in contract.joints.names):
        kind = KINDS[d.signal]
        if kind != contract.action.kind:
            raise BadInput(f"the policy commands {contract.action.kind}, but the drive of {d.name} takes {kind}")
    period = contract.timing.control_dt
    if period is not None and abs(period - twin.control_dt) > 1e-6:
        raise BadInput(f"the policy runs every {period:g} s, but {twin.name} is commanded every {twin.control_dt:g} s")


def _most(twin: Twin, d: Drive, torque: float) -> float:
    """The largest command of a velocity or torque drive."""
    if twin.model.actuator_ctrllimited[d.actuator]:
        return float(np.abs(twin.model.actuator_ctrlrange[d.actuator]).max())
    if d.signal == "tau" and np.isfinite(torque):
        return torque
    raise BadInput(
        f"{d.name} has no limit on its command, so an action has no scale: give it a ctrlrange, or gains (--kp, --kd)"
    )


def _grouping(space: Space) -> tuple[tuple[str, ...], Array]:
    """Quantities of a space, and the matrix that averages each over joints and links: (parameters, quantities)."""
    quantities = tuple(dict.fromkeys(p.quantity for p in space.parameters))
    belongs = np.array([[p.quantity == q for q in quantities] for p in space.parameters], float).reshape(len(space), -1)
    return quantities, belongs / np.maximum(belongs.sum(axis=0), 1)


def build_contract(twin: Twin, task: Task) -> Contract:
    """What a runtime must know of a policy for this task and robot."""
    robot = twin.robot
    table = robot.joint_table
    if not table:
        raise BadInput(f"{twin.name} has no driven joints, so there is nothing to learn; state gains with --kp and --kd")
    signals = {d.signal for d in twin.drives}
    if len(signals) > 1:
        raise BadInput(f"{twin.name} mixes drives of {' and '.join(sorted(signals))}; a policy commands one kind")
    signal = signals.pop()
    pose = twin.home
    default = tuple(float(pose[d.qpos]) for d in twin.drives)
    if signal == "q":
        scale, offset = (task.episode.action_scale,) * len(table), default
    else:
        limits = [_most(twin, d, j.torque_limit) for d, j in zip(twin.drives, table, strict=True)]
        scale, offset = tuple(limits), (0.0,) * len(table)
    terms: tuple[Term, ...] = tuple(task.terms(twin))
    nominal = {p.name: float(p.nominal) for p in twin.space.parameters}
    has_line = any(p.quantity == "motor.no_load_speed" for p in twin.space.parameters)
    in_duty = any(isinstance(m, Motor) and m.dc is not None and m.dc.voltage_control for m in twin.mechanisms)
    imu = imu_of(twin.model)
    return Contract(
        joints=Joints(
            twin.joints,
            default,
            tuple(nominal.get(f"gains.kp/{j.name}", j.kp) for j in table),
            tuple(nominal.get(f"gains.kd/{j.name}", j.kd) for j in table),
            tuple(j.torque_limit if np.isfinite(j.torque_limit) else None for j in table),
            tuple(nominal.get(f"motor.no_load_speed/{j.name}") for j in table) if has_line else None,
            tuple(j.armature for j in table),
            tuple((j.low, j.high) if np.isfinite(j.low + j.high) else None for j in table),
            "duty" if in_duty else "Nm",
        ),
        action=Action(KINDS[signal], twin.joints, scale, offset, reference=task.episode.reference),
        observation=Observation(terms),
        timing=Timing(twin.control_dt, twin.model.opt.timestep, twin.substeps),
        source=Source("gapless", gapless.__version__),
        robot=RobotIdentity(twin.name, mass=robot.mass),
        conventions=Conventions(imu_frame=imu.frame if imu else None),
        normalizer="baked",
        commands=dict(task.commands),
    )
