"""PPOSettings of PPO that work without tuning, by task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gapless.errors import BadInput
from gapless.policy import checks
from gapless.robots import find_legs
from gapless.twin import Twin

MOST_LAYERS = 10
MOST_STEPS = 10_000_000
"""In an iteration: what fits into memory."""


@dataclass(frozen=True)
class PPOSettings:
    """Proximal policy optimisation as rsl-rl-lib does it; `ppo_settings` has what suits a task and robot."""

    worlds: int = 256
    steps: int = 24
    """Control periods of each world in an iteration."""
    iterations: int = 700
    epochs: int = 4
    minibatches: int = 4
    gamma: float = 0.97
    lam: float = 0.93
    clip: float = 0.2
    entropy: float = 0.002
    std: float = 0.8
    """Of the actions at first."""
    kl: float = 0.02
    """The learning rate follows this divergence of the policy in an update."""
    rate: float = 1e-3
    most_rate: float = 3e-3
    hidden: tuple[int, ...] = (128, 128)
    recurrent: int = 0
    """Cells of an LSTM before the network; 0 for none. A recurrent policy learns without mirrored batches."""
    mirror: bool = True
    widen: bool = False
    """Whether worlds start near the middle of what they are drawn from; half-way through they reach its ends."""
    slow: float = 1.0
    """Share of their ranges in which commands of a velocity are drawn at first; half-way through they fill them."""
    every: int = 50
    """Iterations between checkpoints. Episodes start anew at each, so that a resumed run is the same run."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("worlds", 1, 100_000),
            ("steps", 1, 10_000),
            ("iterations", 1, 1_000_000),
            ("epochs", 1, 100),
            ("minibatches", 1, 1000),
            ("recurrent", 0, 4096),
            ("every", 1, 1_000_000),
        ):
            checks.whole(getattr(self, name), name, low, high)
        for name, most in (("gamma", 1.0), ("lam", 1.0), ("clip", 10.0), ("entropy", 10.0), ("std", 10.0), ("kl", 10.0)):
            checks.number(getattr(self, name), name, 0.0, most)
        for name in ("rate", "most_rate", "slow"):
            checks.number(getattr(self, name), name, 0.0, 1.0)
        for name in ("mirror", "widen"):
            if not isinstance(getattr(self, name), bool):
                raise BadInput(f"{name}: true or false was expected, not {str(getattr(self, name))[:40]}")
        if self.minibatches > self.worlds * self.steps or self.worlds * self.steps > MOST_STEPS:
            raise BadInput(
                f"{self.worlds} worlds of {self.steps} steps do not make {self.minibatches} minibatches that fit here"
            )
        if not 1 <= len(checks.listed(self.hidden, "hidden")) <= MOST_LAYERS:
            raise BadInput(f"hidden: a network has 1 to {MOST_LAYERS} layers")
        checks.put(self, "hidden", tuple(checks.whole(h, "hidden", 1, 4096) for h in checks.listed(self.hidden, "hidden")))

    def rsl(self) -> dict[str, Any]:
        """As rsl-rl-lib's configuration."""
        memory = {"rnn_type": "lstm", "rnn_hidden_dim": self.recurrent, "rnn_num_layers": 1} if self.recurrent else {}
        net = {
            "class_name": "RNNModel" if self.recurrent else "MLPModel",
            "hidden_dims": list(self.hidden),
            "activation": "lrelu",
            "obs_normalization": True,
            **memory,
        }
        return {
            "num_steps_per_env": self.steps,
            "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
            "actor": {**net, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": self.std}},
            "critic": dict(net),
            "algorithm": {
                "class_name": "gapless.learn.update:SideBySide",
                "num_learning_epochs": self.epochs,
                "num_mini_batches": self.minibatches,
                "clip_param": self.clip,
                "gamma": self.gamma,
                "lam": self.lam,
                "entropy_coef": self.entropy,
                "learning_rate": self.rate,
                "max_grad_norm": 1.0,
                "schedule": "adaptive",
                "desired_kl": self.kl,
                "symmetry_cfg": None,
            },
            "multi_gpu": None,
        }


def ppo_settings(task: str, twin: Twin) -> PPOSettings:
    """PPOSettings that work for a task and robots of its class."""
    small = {"drive": 200, "stand": 150}
    if task == "reach":  # where a servo goes shows within a quarter of a second: look no further ahead
        return PPOSettings(iterations=300, gamma=0.9, lam=0.9, kl=0.03, std=0.5, entropy=0.005)
    if task == "swing":  # a policy that is sure too early stays with one link up and the other aside
        return PPOSettings(worlds=128, iterations=250, kl=0.03, std=0.5, entropy=0.02)
    if task in small:
        return PPOSettings(worlds=128, iterations=small[task])
    legs = find_legs(twin.robot)
    if legs is not None and len(legs) == 2:  # balance needs to look further ahead, and stiff drives less noise
        return PPOSettings(iterations=1500, gamma=0.98, lam=0.95, std=0.5, widen=True)
    # more worlds for fewer periods: what a period costs besides physics is shared by more of them
    return PPOSettings(worlds=512, steps=12)
