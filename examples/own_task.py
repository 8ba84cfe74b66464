"""A task of one's own: a quadruped lowers its body to a commanded height and holds it there.

python examples/own_task.py

Takes about a minute on two cores, and leaves a policy in out/crouch that `gapless.load_policy` reads.
"""

from pathlib import Path

import numpy as np

from gapless.learn import Episode, News, PPOSettings, Run, joint_terms, run_course, train
from gapless.policy import Term, load_policy

OUT = Path("out/crouch")


class Crouch:
    episode = Episode(seconds=4.0, command_every=2.0, action_scale=0.5)
    commands = {"height": (0.18, 0.30)}  # noqa: RUF012 - it is never written to

    def terms(self, twin):
        return (*joint_terms(twin), Term("command", "command", 1, scale=5.0, unit="m"))

    def command(self, scene, ids, rng):
        return rng.uniform(*self.commands["height"], (len(ids), 1))

    def reward(self, scene):
        off = scene.height - scene.command[:, 0]
        return {
            "height": np.exp(-((off / 0.03) ** 2)),
            "upright": -scene.gravity[:, 2],
            "speed": -0.01 * (scene.dq**2).mean(axis=1),
        }

    def done(self, scene):
        return scene.up[:, 2] < 0.5

    def success(self, scene):
        """Only the course asks this."""
        return np.abs(scene.height - scene.command[:, 0]) < 0.02


def tell(news: News) -> None:
    if news.unseen is not None:
        print(f"iteration {news.progress.iteration}: reward per second {news.unseen:.2f} on robots that it has not met")


def main() -> None:
    run = Run("crouch", "quadruped", settings=PPOSettings(worlds=128, iterations=100, every=25))
    train(run, OUT, tell, task=Crouch())
    policy = load_policy(OUT)
    twin, task, robots = run.build(Crouch())
    result = run_course(twin, task, policy, robots, np.random.default_rng(1), draws=2, seconds=4.0)
    print(f"{result.summary()['success']:.0%} of {len(result.fell)} robots, each kicked, hold their height to 2 cm")


if __name__ == "__main__":
    main()
