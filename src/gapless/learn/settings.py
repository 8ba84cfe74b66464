"""Settings of PPO that work without tuning, by task."""

from dataclasses import dataclass
from typing import Any

from gapless.checks import Checked, checked, flag, listed, number, whole
from gapless.errors import BadInput
from gapless.robots import find_legs
from gapless.twin import Twin

MOST_LAYERS = 10
MOST_STEPS = 10_000_000
"""In an iteration: what fits into memory."""


def _layers(value: Any, what: str) -> tuple[int, ...]:
    if not 1 <= len(listed(value, what)) <= MOST_LAYERS:
        raise BadInput(f"{what}: a network has 1 to {MOST_LAYERS} layers")
    return tuple(whole(width, what, 1, 4096) for width in listed(value, what))


@dataclass(frozen=True)
class PPOSettings(Checked):
    """Proximal policy optimisation as rsl-rl-lib does it; `ppo_settings` has what suits a task and robot."""

    worlds: int = checked(whole, 256, low=1, high=100_000)
    steps: int = checked(whole, 24, low=1, high=10_000)
    """Control periods of each world in an iteration."""
    iterations: int = checked(whole, 700, low=1, high=1_000_000)
    epochs: int = checked(whole, 4, low=1, high=100)
    minibatches: int = checked(whole, 4, low=1, high=1000)
    gamma: float = checked(number, 0.97, low=0.0, high=1.0)
    lam: float = checked(number, 0.93, low=0.0, high=1.0)
    clip: float = checked(number, 0.2, low=0.0, high=10.0)
    entropy: float = checked(number, 0.002, low=0.0, high=10.0)
    std: float = checked(number, 0.8, low=0.0, high=10.0)
    """Initial standard deviation of the actions."""
    kl: float = checked(number, 0.02, low=0.0, high=10.0)
    """The learning rate is adapted to this divergence of the policy in an update."""
    rate: float = checked(number, 1e-3, low=1e-9, high=1.0)
    most_rate: float = checked(number, 3e-3, low=0.0, high=1.0)
    hidden: tuple[int, ...] = checked(_layers, (128, 128))
    recurrent: int = checked(whole, 0, low=0, high=4096)
    """Cells of an LSTM before the network; 0 for none. A recurrent policy learns without mirrored batches."""
    mirror: bool = checked(flag, True)
    widen: bool = checked(flag, False)
    """Whether parameters are drawn from a narrow range at first, which grows to its full width half-way through."""
    slow: float = checked(number, 1.0, low=0.0, high=1.0)
    """Share of their ranges in which velocity commands are drawn at first; it grows to 1 half-way through."""
    every: int = checked(whole, 50, low=1, high=1_000_000)
    """Iterations between checkpoints. Episodes start anew at each, so that a resumed run is the same run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minibatches > self.worlds * self.steps or self.worlds * self.steps > MOST_STEPS:
            raise BadInput(
                f"{self.worlds} worlds of {self.steps} steps cannot be split into {self.minibatches} minibatches: "
                f"an iteration has at least one step for each and at most {MOST_STEPS}"
            )

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
    """Settings that suit a task and robots of its class."""
    small = {"drive": 200, "stand": 150}
    if task == "reach":  # a servo shows where it goes within a quarter of a second: no need to look further ahead
        return PPOSettings(iterations=300, gamma=0.9, lam=0.9, kl=0.03, std=0.5, entropy=0.005)
    if task == "swing":  # a policy that stops exploring too early leaves the second link hanging
        return PPOSettings(worlds=128, iterations=250, kl=0.03, std=0.5, entropy=0.02)
    if task in small:
        return PPOSettings(worlds=128, iterations=small[task])
    legs = find_legs(twin)
    if legs is not None and len(legs) == 2:  # balance needs a longer horizon, and stiff drives less noise
        return PPOSettings(iterations=1500, gamma=0.98, lam=0.95, std=0.5, widen=True)
    # more worlds and fewer periods: the overhead of a period is shared by more worlds
    return PPOSettings(worlds=512, steps=12)
