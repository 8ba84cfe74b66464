"""Forces: robots learn to work while something pulls at their hand (FALCON, Zhang et al. 2025), by a curriculum of force.

What pulls is at the last link of an arm, or at the base of a robot that stands or walks, where it stands for what its arms
carry. The critic sees the force, the actor never does. How large it may be follows from what the motors can hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Ints
from gapless.errors import BadInput
from gapless.learn import NETWORKS, UNSEEN, Environment, Mirror, Run, Task, evaluate, save_networks, save_trained
from gapless.robots import home_data
from gapless.twin import Twin

if TYPE_CHECKING:
    from gapless.learn import Deterministic, Progress

NONE = 0.25
"""Share of forces that are zero."""
SECONDS = 3.0, 5.0
"""Of one force, drawn uniformly [s]."""
FILTER = 0.05
"""Share of the way to a new force in a period of 20 ms."""
FIRST, STEP = 0.1, 0.02
"""Share of the largest force at first, and by how much it moves."""
GROW, SHRINK = 0.8, 0.6
"""Share of episodes that end in success (where the task says no more, without a fall) at which the force moves."""
EPISODES = 64
"""That are judged together."""
HOLDS = 0.5
"""Share of what the motors can hold in the home pose that an arm is loaded with at most."""
SHORT = 0.05
"""A lever that is shorter counts as this long: a motor must also hold what pulls sideways when the arm has moved [m]."""
WEIGHT = 0.2
"""Share of its weight that pulls at a floating base at most."""


@dataclass
class Curriculum:
    """How large forces are now; it outlives environments, which are made anew at each checkpoint."""

    scale: float = FIRST
    """Of the largest force, 0 to 1."""
    moves: bool = True
    _won: int = 0
    _seen: int = 0

    def ended(self, success: Array) -> None:
        """Episodes ended, with success (1) or without (0)."""
        if not self.moves:
            return
        self._won, self._seen = self._won + int(np.sum(success)), self._seen + len(success)
        if self._seen < EPISODES:
            return
        share, self._won, self._seen = self._won / self._seen, 0, 0
        if share > GROW:
            self.scale = min(1.0, self.scale + STEP)
        elif share < SHRINK:
            self.scale = max(FIRST, self.scale - STEP)


def pulled_link(twin: Twin) -> str:
    """What is pulled at: the base of a robot that floats, else the link of the last joint."""
    return twin.base if twin.floating else str(twin.model.body(twin.model.jnt_bodyid[twin.drives[-1].joint]).name)


def largest(twin: Twin) -> Array:
    """The largest force along each axis of the world [N]. Shape: (3,)."""
    if twin.floating:
        return np.full(3, WEIGHT * twin.mass * float(np.linalg.norm(twin.model.opt.gravity)))
    model, data = twin.model, home_data(twin.model)
    mujoco.mj_forward(model, data)
    jacobian, dofs = np.zeros((3, model.nv)), [d.dof for d in twin.drives]
    mujoco.mj_jacBodyCom(model, data, jacobian, None, model.body(pulled_link(twin)).id)
    free = np.array([j.torque_limit for j in twin.joint_table]) - np.abs(data.qfrc_bias[dofs])
    if not np.isfinite(free).all() or (free <= 0).any():
        raise BadInput(f"{twin.name}: its motors have no torque limits, or hold only its weight, so no force follows")
    return np.asarray(HOLDS * np.min(free / np.maximum(np.abs(jacobian[:, dofs]), SHORT), axis=1))


class Pulled(Environment):
    """An environment in which forces pull at a link, as large as a curriculum says."""

    curriculum: Curriculum

    def __init__(self, twin: Twin, task: Task, n: int, *given: Any, curriculum: Curriculum, **named: Any):
        """As an `Environment`, with a curriculum."""
        self.curriculum, self.link, self.most = curriculum, pulled_link(twin), largest(twin)
        super().__init__(twin, task, n, *given, **named)
        self.force: Array = np.zeros((n, 3))
        """What pulls at each robot now [N]."""
        self._wanted, self._until, self._succeeded = np.zeros((n, 3)), np.zeros(n), np.zeros(n, bool)
        self._chances = self._rng.spawn(1)[0]

    def step(self, action: ArrayLike) -> Any:
        due = np.flatnonzero(self.scene.time >= self._until)
        self._draw(due, self.scene.time[due])
        self.force += (1 - (1 - FILTER) ** (self.scene.dt / 0.02)) * (self._wanted - self.force)
        self.worlds.pull(self.link, self.force)
        step = super().step(action)
        ended = step.failed | step.timeout
        self.curriculum.ended(self._succeeded[ended])
        return step

    def _start(self, ids: Ints) -> None:
        self.force[ids] = 0.0
        self._draw(ids, 0.0)
        super()._start(ids)

    def _draw(self, ids: Ints, now: Array | float) -> None:
        """New forces for some robots, and until when."""
        rng, k = self._chances, len(ids)
        size = self.curriculum.scale * self.most * rng.uniform(-1, 1, (k, 3))
        self._wanted[ids] = np.where(rng.random((k, 1)) < NONE, 0.0, size)
        self._until[ids] = now + rng.uniform(*SECONDS, k)

    def _metrics(self, broken: Any) -> dict[str, Array]:
        # asked once a period, before episodes that ended start anew
        won = self.task.success(self.scene) if hasattr(self.task, "success") else True
        self._succeeded = np.asarray(won) & ~self.scene.failed & ~broken
        return {**super()._metrics(broken), "force": np.linalg.norm(self.force, axis=1)}

    def _privileged(self) -> list[Array]:
        force = self.force / self.most
        if self.scene.floating:  # as the base sees it
            (cos, sin), (x, y, z) = self.scene.heading.T, force.T
            force = np.stack([cos * x + sin * y, cos * y - sin * x, z], axis=1)
        return [*super()._privileged(), force]

    @property
    def critic_columns(self) -> tuple[str, ...]:
        return (*super().critic_columns, "force.0", "force.1", "force.2")

    def mirror(self) -> tuple[Mirror, Mirror, Mirror] | None:
        known = super().mirror()
        if known is None:
            return None
        policy, truth, action = known
        index = np.concatenate([truth.index, len(truth.index) + np.arange(3)])
        return policy, Mirror(index, np.concatenate([truth.sign, [1.0, -1.0, 1.0]])), action


def train_forces(
    run: Run,
    folder: Path,
    tell: Callable[[Progress, float], None] = lambda progress, best: None,
    threads: int = 0,
    curriculum: Curriculum | None = None,
) -> Curriculum:
    """Train a policy on robots that are pulled at, and leave it in a folder; how far the curriculum came is returned.

    Args:
        run: what a plain training would be given.
        folder: where; made if it does not exist.
        tell: told each iteration's progress and the best reward per second on unseen robots so far, at the full force.
        threads: of physics, 0 for one per core.
        curriculum: another than that which grows from a tenth.
    """
    from gapless.adapt.improve import improve
    from gapless.learn import Learner

    curriculum = Curriculum() if curriculum is None else curriculum
    twin, task, belief = run.build()
    contract = run.contract(twin, task, belief)

    def make(rng: np.random.Generator, hardness: float) -> Environment:
        drawn = belief.narrow(hardness) if run.settings.widen and belief is not None else belief
        return Pulled(twin, task, run.settings.worlds, drawn, rng, threads, contract, curriculum=curriculum)

    learner = Learner(make, run.settings, run.seed)
    folder.mkdir(parents=True, exist_ok=True)

    def judged(policy: Deterministic) -> tuple[float, Callable[[], None]]:
        full, rng = Curriculum(1.0, moves=False), np.random.default_rng([run.seed, 1 << 40])
        judge = Pulled(twin, task, UNSEEN, belief, rng, threads, contract, curriculum=full)
        score, golden = evaluate(policy, judge)

        def save() -> None:
            save_trained(policy, judge, golden, folder, run.hashes()["robot"])
            save_networks(folder / NETWORKS, learner.state(), learner.environment.critic_columns)

        return score, save

    improve(learner, judged, tell)
    run.save(folder)
    return curriculum
