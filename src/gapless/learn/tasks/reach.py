"""Reach: an arm moves its tip to a commanded point and holds it there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn.scene import Scene
from gapless.learn.task import Episode, Ints, joint_terms
from gapless.policy import Term
from gapless.twin import Twin

PLACES = 4096
"""Poses that targets are taken from."""
AROUND = 0.25
"""Largest distance of the joints from home in these poses, as a share of their range."""
FLOOR = 0.04
"""Least height of targets, and of every link in the poses they come from [m]."""
NEAR = 0.03
"""Distance that counts as reached: encoder zeros of 0.02 rad on an arm of 0.4 m, and sag under load, allow no better [m]."""


@dataclass(frozen=True)
class ReachTask:
    """Targets are points where the tip was in a random pose of the nominal robot, so each can be reached; see `reach_of`.

    The policy does not see joint velocities: servos damp themselves, and without delay it reacted to velocities with targets
    that oscillated every period.
    """

    tip: str
    targets: Array
    """Shape: (places, 3), in the world's frame, which is the base's [m]."""
    commands: Mapping[str, tuple[float, float]]
    history: int = 1
    episode: Episode = field(default_factory=lambda: Episode(seconds=6.0, command_every=3.0, action_scale=1.0, start_q=0.5))

    def terms(self, twin: Twin) -> tuple[Term, ...]:
        return (
            *(term for term in joint_terms(twin, self.history) if term.name != "dq"),
            Term("target", "command", 3, scale=4.0, unit="m", frame="base"),
            Term("tip", "tip", 3, scale=4.0, provenance="estimated", unit="m", frame=self.tip),
        )

    def command(self, scene: Scene, ids: Ints, rng: np.random.Generator) -> Array:
        return self.targets[rng.integers(len(self.targets), size=len(ids))]

    def away(self, scene: Scene) -> Array:
        """Distance of the tip from its target [m]."""
        return np.asarray(np.linalg.norm(scene.point(self.tip) - scene.command, axis=1))

    def metrics(self, scene: Scene) -> dict[str, Array]:
        return {"distance": self.away(scene)}

    def reward(self, scene: Scene) -> dict[str, Array]:
        away = self.away(scene)
        return {
            "away": -5.0 * away,
            "near": 2.0 * np.exp(-((away / 0.05) ** 2)),
            "there": 2.0 * np.exp(-((away / 0.015) ** 2)),
            "speed": -0.02 * (scene.dq**2).sum(axis=1),
            "action_rate": -0.05 * ((scene.action - scene.last_action) ** 2).sum(axis=1),
            "torque": -0.2 * ((scene.torque / scene.torque_limit) ** 2).mean(axis=1),
        }

    def done(self, scene: Scene) -> Bools:
        return np.zeros(scene.n, bool)

    def success(self, scene: Scene) -> Bools:
        return self.away(scene) < NEAR


def reach_of(twin: Twin, history: int = 1) -> ReachTask:
    """The task for an arm; bad input for a robot whose base is not fixed."""
    if twin.floating or len(twin.joints) < 2:
        raise BadInput(f"{twin.name} is not an arm: reach needs a fixed base and at least two driven joints")
    model = twin.model
    body = int(model.jnt_bodyid[twin.drives[-1].joint])
    chain = {body, int(model.body_parentid[body])}
    sites = [model.site(s).name for s in range(model.nsite) if int(model.site_bodyid[s]) in chain and model.site(s).name]
    tip = f"site:{sites[-1]}" if sites else f"body:{model.body(body).name}"
    targets = _targets(twin, tip)
    low, high = targets.min(axis=0), targets.max(axis=0)
    commands = {axis: (float(low[i]), float(high[i])) for i, axis in enumerate("xyz")}
    return ReachTask(tip, targets, commands, history)


def _targets(twin: Twin, tip: str) -> Array:
    """Positions of the tip in random poses about home that keep the arm off the floor. Shape: (places, 3)."""
    model, data, rng, pose = twin.model, mujoco.MjData(twin.model), np.random.default_rng(0), twin.home
    kind, _, name = tip.partition(":")
    points: list[Array] = []
    links = sorted({int(model.jnt_bodyid[d.joint]) for d in twin.drives})
    for _ in range(50 * PLACES):
        for d in twin.drives:
            low, high = (d.low, d.high) if np.isfinite(d.low) else (-np.pi, np.pi)
            data.qpos[d.qpos] = np.clip(pose[d.qpos] + rng.uniform(-AROUND, AROUND) * (high - low), low, high)
        mujoco.mj_kinematics(model, data)
        point = data.site(name).xpos if kind == "site" else data.body(name).xpos
        if point[2] > FLOOR and data.xpos[links, 2].min() > FLOOR:
            points.append(point.copy())
            if len(points) == PLACES:
                break
    if not points:
        raise BadInput(f"{twin.name} cannot reach any point {FLOOR} m above the floor")
    return np.array(points)
