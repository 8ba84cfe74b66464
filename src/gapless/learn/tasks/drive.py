"""Drive: a rover follows a commanded forward speed and turn rate with wheels whose grip and drives it does not know."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn.scene import Scene
from gapless.learn.task import Episode, Ints, joint_terms
from gapless.learn.tasks.velocity import following
from gapless.policy import Term
from gapless.robots import differential_drive, find_legs
from gapless.rotations import tipped
from gapless.twin import Twin

NEAR = 0.15
"""Share of the largest speed, or turn rate, within which a command counts as followed."""


@dataclass(frozen=True)
class DriveTask:
    """Follow (v, yaw rate); see `drive_of`."""

    commands: Mapping[str, tuple[float, float]]
    history: int = 1
    episode: Episode = field(default_factory=lambda: Episode(seconds=6.0, command_every=3.0, start_q=0.0))

    def terms(self, twin: Twin) -> tuple[Term, ...]:
        # wheels turn without limit, so their angles carry no information
        seen = tuple(t for t in joint_terms(twin, self.history) if t.kind != "q")
        scale = tuple(1 / max(abs(low), abs(high)) for low, high in self.commands.values())
        return (*seen, Term("command", "command", 2, scale=scale))

    def command(self, scene: Scene, ids: Ints, rng: np.random.Generator) -> Array:
        low, high = np.array(list(self.commands.values())).T
        drawn = rng.uniform(low, high, (len(ids), 2))
        drawn[rng.random(drawn.shape) < 0.2] = 0.0
        return drawn

    def errors(self, scene: Scene) -> tuple[Array, Array]:
        """Errors of speed and turn rate, as shares of their ranges."""
        v, w = (max(abs(low), abs(high)) for low, high in self.commands.values())
        speed, turn = self.metrics(scene).values()
        return speed / v, turn / w

    def metrics(self, scene: Scene) -> dict[str, Array]:
        """Errors of the speed [m/s] and of the turn rate [rad/s]."""
        speed, turn = scene.velocity[:, 0] - scene.command[:, 0], scene.yaw_rate - scene.command[:, 1]
        return {"velocity_error": np.abs(speed), "yaw_error": np.abs(turn)}

    def reward(self, scene: Scene) -> dict[str, Array]:
        speed, turn = self.errors(scene)
        return {
            "speed": following(speed, NEAR**2),
            "turn": following(turn, NEAR**2),
            "action_rate": -0.1 * ((scene.action - scene.last_action) ** 2).sum(axis=1),
        }

    def done(self, scene: Scene) -> Bools:
        return tipped(scene.up)

    def success(self, scene: Scene) -> Bools:
        """Within 15 % of the largest speed and turn rate."""
        speed, turn = self.errors(scene)
        return (speed < NEAR) & (turn < NEAR)


def drive_of(twin: Twin, history: int = 1) -> DriveTask:
    """The task for a robot with two driven wheels."""
    if not twin.floating or find_legs(twin) is not None or len(twin.joints) != 2:
        raise BadInput(f"{twin.name} is not a rover: drive needs a floating base and two driven wheels")
    left, right = sorted((twin.model.body(twin.model.jnt_bodyid[d.joint]) for d in twin.drives), key=lambda b: -b.pos[1])
    lengths = differential_drive(twin.model, left.name, right.name)
    most = float(min(abs(twin.model.actuator_ctrlrange[d.actuator]).max() for d in twin.drives))
    v, w = 0.55 * most * lengths.radius, 0.35 * most * lengths.radius * 2 / lengths.track  # together 90 % of a wheel's speed
    return DriveTask({"v": (-v, v), "yaw_rate": (-w, w)}, history)
