"""Environment: worlds and a task together; actions in, observations of two groups and rewards by term out."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.learn import mirror
from gapless.learn.adr import GrowingRanges
from gapless.learn.context import Truth
from gapless.learn.contract import build_contract
from gapless.learn.scene import Scene
from gapless.learn.task import Task
from gapless.policy import Contract, Estimator, Gait, Observation, Observer, check_drives, targets
from gapless.rotations import multiply
from gapless.twin import Belief, Space, Twin
from gapless.worlds import Worlds

Frame = NDArray[np.float32]
SPREAD = 3.0
"""The critic sees parameters in units of a typical mismatch, clipped to this many."""


@dataclass(frozen=True)
class Step:
    """The outcome of one control period. Shape of each array: (n, ...)."""

    observation: dict[str, Frame]
    """By group: "policy" holds what a robot can know, "critic" anything."""
    reward: Array
    terms: Mapping[str, Array]
    """The reward's parts, by name; they add up to it."""
    metrics: Mapping[str, Array]
    """What the task offers to watch, before episodes that ended start anew; NaN where physics broke."""
    failed: Bools
    """Episodes that ended because the task failed or physics broke."""
    timeout: Bools
    """Episodes that ended because their time was up, or at the edge of the ground."""
    final: dict[str, Frame] | None = None
    """Where episodes ended and `keep_final` is set: the last observation of the old episode."""


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
        ranges: GrowingRanges | None = None,
    ):
        """Build the worlds.

        Args:
            twin: the robot.
            task: what it has to do.
            n: number of worlds.
            belief: what parameters are drawn from; None for the nominal robot.
            rng: source of all randomness.
            threads: of physics, 0 for one per core.
            contract: of a policy that was trained elsewhere; by default that of the task.
            ranges: that grow; the belief is then their box.
        """
        self.twin, self.task, self.n = twin, task, n
        self.contract = build_contract(twin, task) if contract is None else contract
        check_drives(twin, self.contract)
        self._columns = self.contract.columns(twin.joints)
        kinds = {t.kind for t in self.contract.observation.terms}
        context = self.contract.context
        self._told = Truth(context, twin) if context and context.value is None and "context" in kinds else None
        usual = ("q", "dq", "quat", "gyro") if twin.floating else ("q", "dq")
        signals = (*usual, *(s for s in ("tau", "acc") if s in kinds))
        self.worlds = Worlds(twin, n, belief, rng.spawn(1)[0], signals, threads)
        self._rng = rng
        self._ranges, self._chance = ranges, rng.spawn(1)[0] if ranges else rng
        if ranges:
            ranges.begin(n, task.episode.seconds, twin.control_dt)
        self.scene = Scene(twin, self.worlds, Gait(self.contract, n), len(task.commands), len(self.contract.action.joints))
        self._observer = Observer(self.contract, n)
        self._estimate = Estimator(twin, self.contract)
        plain = tuple(dataclasses.replace(t, history=1, lag=0) for t in self.contract.observation.terms)
        self._truth = Observer(dataclasses.replace(self.contract, observation=Observation(plain)), n)
        self._controls = [twin.drives[c].control for c in self._columns]
        self.quantities, self._by_quantity = _grouping(self.worlds.belief.space)
        self._encoders = [i for i, name in enumerate(self.worlds.belief.space.names) if name.startswith("offset.encoder")]
        self._parameters = np.zeros((n, len(self.quantities)))
        self._places, self._dofs = [d.qpos for d in twin.drives], [d.dof for d in twin.drives]
        self._limits = np.array([(d.low, d.high) for d in twin.drives]).T
        self._end = np.full(n, np.inf)
        self._next_command = np.full(n, np.inf)
        self._next_push = np.full(n, np.inf)
        self.hardness = 1.0
        """Scale of pushes and largest hardness of the ground, 0 to 1; a curriculum raises it."""
        self.ground_hardness: Array = np.zeros(n)
        """Hardness of the ground where each episode started, 0 to 1; 0 on a floor."""
        self._command = np.tile(self.worlds.home_command, (n, 1))
        self._fresh = np.ones(n, bool)  # no previous target yet: the action filter starts unfiltered
        self.change_every = np.inf
        """Mean time between changes of a robot's parameters in mid-episode [s]."""
        self.kept: Array | None = None
        """Parameters with which worlds start anew, over the belief's space; None draws new ones. Shape: (n, parameters)."""
        self.keep_final = False
        """Whether a step also gives the last observation of episodes that end in it."""

    def reset(self, spread: bool = False) -> dict[str, Frame]:
        """Start all episodes; with `spread` they end at different times, as in a long run."""
        self._start(np.arange(self.n))
        if spread:
            end = self._rng.uniform(0.0, self.task.episode.seconds, self.n)
            self._end = end if self._ranges is None else np.where(self._ranges.at_bounds, self._end, end)
        return self._observe()

    def step(self, action: ArrayLike) -> Step:
        """Advance every world by one control period under actions of shape (n, actions)."""
        scene = self.scene
        scene.last_action, scene.action = scene.action, np.array(action, float)
        self._command[:, self._controls] = self._targets()
        self._push()
        self._change()
        self.worlds.step(self._command)
        scene.advance()
        scene.gait.advance(scene.command, self._estimate(self.worlds.readings) if scene.gait.wake else {})
        broken = self.worlds.failed
        scene.failed = self.task.done(scene)
        failed = scene.failed | broken
        terms, metrics = dict(self.task.reward(scene)), self._metrics(broken)
        now = scene.time + scene.dt / 2  # sums of periods round
        over = now >= self._end
        if scene.ground is not None:
            over |= scene.ground.beyond(scene.position)  # which is not the policy's fault
        timeout = over & ~failed
        self._check(terms)
        # per period; broken physics says nothing about the task
        terms = {name: np.where(broken, 0.0, term * scene.dt) for name, term in terms.items()}
        ended = failed | timeout
        if self._ranges is not None:
            success = self.task.success(scene) if hasattr(self.task, "success") else ~failed
            self._ranges.watch(np.asarray(success), failed, timeout)
        due = np.flatnonzero((now >= self._next_command) & ~ended)
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

    def _start(self, ids: Ints) -> None:
        """Start new episodes."""
        episode, scene, worlds, rng = self.task.episode, self.scene, self.worlds, self._rng
        k, base = len(ids), scene.base_qpos if scene.floating else 0
        qpos, qvel = np.tile(worlds.home, (k, 1)), np.zeros((k, self.twin.model.nv))
        places, dofs = self._places, self._dofs
        q = qpos[:, places] + rng.uniform(-1, 1, (k, len(places))) * episode.start_q
        qpos[:, places] = np.clip(q, *self._limits)
        qvel[:, dofs] = rng.uniform(-1, 1, (k, len(dofs))) * episode.start_dq
        if scene.ground is not None:
            self._place(ids, qpos)
        if scene.has_legs:
            qvel[:, scene.base_dof : scene.base_dof + 2] = rng.uniform(-1, 1, (k, 2)) * episode.start_dq
            qpos[:, base + 2] = 0.0
            _, _, low = scene.feet_at(qpos[:, places], qvel[:, dofs], qpos[:, base + 3 : base + 7], qpos[:, base : base + 3])
            qpos[:, base + 2] = -low.min(axis=1)  # the lowest foot just touches the ground
        given = self.kept is not None or self._ranges is not None
        if self.kept is not None:
            worlds.write(self.kept[ids], ids)
        elif self._ranges is not None:
            worlds.write(self._ranges.draw(ids, self._chance), ids)
        worlds.reset(ids, qpos, qvel, redraw=not given)
        scene.update(ids)
        self._parameters[ids] = self._shown(ids)
        which = np.zeros(self.n, bool)
        which[ids] = True
        self._observer.reset(which)
        self._truth.reset(which)
        scene.gait.reset(which)
        self._fresh[ids] = True
        scene.time[ids] = 0.0
        scene.action[ids] = scene.last_action[ids] = 0.0
        self._end[ids] = episode.seconds
        self._next_push[ids] = self._push_delay(k) if episode.push else np.inf
        self._ask(ids)

    def _place(self, ids: Ints, qpos: Array) -> None:
        """Put robots on level places of the ground, facing anywhere: shape of qpos (k, nq)."""
        ground, base, rng = self.scene.ground, self.scene.base_qpos, self._rng
        assert ground is not None
        place, self.ground_hardness[ids] = ground.start(rng.uniform(0.0, self.hardness, len(ids)), rng)
        qpos[:, base : base + 2] = place
        qpos[:, base + 2] += ground.height(*place.T)
        half = rng.uniform(-np.pi, np.pi, len(ids)) / 2
        yaw = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=-1)
        qpos[:, base + 3 : base + 7] = multiply(yaw, qpos[:, base + 3 : base + 7])

    def _ask(self, ids: Ints) -> None:
        """Draw new commands."""
        command = np.asarray(self.task.command(self.scene, ids, self._rng), float)
        if command.shape != (len(ids), self.scene.command.shape[1]):
            raise BadInput(f"the task's command has shape {command.shape}; expected {(len(ids), self.scene.command.shape[1])}")
        self.scene.command[ids] = command
        self._next_command[ids] = self.scene.time[ids] + self.task.episode.command_every

    def _push_delay(self, k: int) -> Array:
        return self._rng.uniform(0.5, 1.5, k) * self.task.episode.push_every

    def _push(self) -> None:
        due = np.flatnonzero(self.scene.time >= self._next_push)
        if not len(due):
            return
        angle = self._rng.uniform(0, 2 * np.pi, len(due))
        size = self.task.episode.push * self.hardness * self._rng.random(len(due))
        kick = np.stack([size * np.cos(angle), size * np.sin(angle), np.zeros(len(due))], axis=-1)
        self.worlds.push(kick, due)
        self._next_push[due] += self._push_delay(len(due))

    def _change(self) -> None:
        """Draw new parameters where it happens that a robot changes."""
        if self.change_every < np.inf:
            self.worlds.redraw(np.flatnonzero(self._rng.random(self.n) < self.scene.dt / self.change_every))
            self._parameters[:] = self._shown(np.arange(self.n))

    def _shown(self, ids: Ints) -> Array:
        """Parameters of worlds as the critic sees them, averaged over joints and links. Shape: (k, quantities)."""
        scaled = self.worlds.belief.space.to_scaled(self.worlds.values[ids])
        # left and right encoder zeros would cancel in the mean: show their size
        scaled[:, self._encoders] = np.abs(scaled[:, self._encoders])
        return np.clip(scaled, -SPREAD, SPREAD) @ self._by_quantity

    def _observe(self, keep: bool = True) -> dict[str, Frame]:
        """What both groups see now; without `keep` no history remembers it."""
        scene, sensed, order = self.scene, self.worlds.readings, self._columns
        readings = sensed | self._estimate(sensed) | {s: sensed[s][:, order] for s in ("q", "dq", "tau") if s in sensed}
        if self._told is not None:
            readings["context"] = self._told(self.worlds)
        true = {"q": scene.q[:, order], "dq": scene.dq[:, order]}
        if scene.floating:
            true |= {"quat": scene.quat, "gyro": scene.turn, "velocity": scene.velocity}
        if "tip" in readings:
            true["tip"] = self._estimate({"q": scene.q, "dq": scene.dq})["tip"]
        asked = scene.command, scene.action, scene.gait, keep
        critic = np.concatenate([self._truth({**readings, **true}, *asked), *self._privileged()], axis=1, dtype=np.float32)
        return {"policy": self._observer(readings, *asked), "critic": critic}

    def _privileged(self) -> list[Array]:
        """What only a simulator knows: velocity, height, feet, and the parameters of the world."""
        scene = self.scene
        parts: list[Array] = [self._parameters]
        if scene.has_legs:
            parts = [scene.foot_height * 10, scene.contact.astype(float), *parts]
        if scene.floating:
            parts = [scene.velocity * 2, (scene.height[:, None] - scene.home_height) * 10, *parts]
        if hasattr(self.task, "privileged"):
            parts.append(self.task.privileged(scene))
        return parts

    @property
    def critic_columns(self) -> tuple[str, ...]:
        """What each column is that the critic sees, in the order of `_privileged`."""
        scene, terms = self.scene, self._truth.contract.observation.terms
        parts = [(t.name, t.dim) for t in terms]
        parts += [("true velocity", 3), ("height", 1)] if scene.floating else []
        parts += [("foot height", len(scene.legs)), ("contact", len(scene.legs))] if scene.has_legs else []
        parts += [(quantity, 1) for quantity in self.quantities]
        parts += [("privileged", self.task.privileged(scene).shape[1])] if hasattr(self.task, "privileged") else []
        return tuple(f"{name}.{i}" for name, width in parts for i in range(width))

    def mirror(self) -> tuple[mirror.Mirror, mirror.Mirror, mirror.Mirror] | None:
        """How the two groups and the action are mirrored left to right; None where that is not known."""
        by_joint = mirror.joints(self.twin)
        space = self.worlds.belief.space
        policy = mirror.observation(self.contract, self.twin, space)
        truth = mirror.observation(self._truth.contract, self.twin, space)
        unknown = hasattr(self.task, "privileged")  # how a task's own columns are mirrored is not known
        if by_joint is None or policy is None or truth is None or unknown or not self.scene.floating:
            return None
        parts = [truth, mirror.straight(mirror.VECTOR), mirror.straight((1.0,))]
        if self.scene.has_legs:
            feet = mirror.feet(self.scene.legs.home)
            if feet is None:
                return None
            parts += [feet, feet]
        parts.append(mirror.parameters(self.quantities))
        return policy, mirror.joined(parts), by_joint


def _grouping(space: Space) -> tuple[tuple[str, ...], Array]:
    """Quantities of a space, and the matrix that averages each over joints and links: (parameters, quantities)."""
    quantities = tuple(dict.fromkeys(p.quantity for p in space.parameters))
    belongs = np.array([[p.quantity == q for q in quantities] for p in space.parameters], float).reshape(len(space), -1)
    return quantities, belongs / np.maximum(belongs.sum(axis=0), 1)
