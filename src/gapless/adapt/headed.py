"""Headed: a trained policy taken apart into what it sees in its observation and a linear last layer, which is what adapts.

Policies whose last layer alone moves adapt about as well as whole ones (Raghu et al. 2020), with a hundredth of the numbers;
and the linear policies of ES-MAML are these, on features that were learned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from gapless.adapt.expert import EPS, layers, part
from gapless.adapt.gradient import Adapts
from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.learn import NETWORKS, Run, load_networks, load_run, save_networks
from gapless.policy import Contract, load_policy

NORMAL, STD = "obs_normalizer.", "distribution.std_param"


class Headed(Adapts):
    """`head @ [features(o), 1]`. Shapes: o (n, width), features (n, wide + 1), head (joints, wide + 1)."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, actor: Mapping[str, Array]):
        """Build the network from plain arrays, as a training keeps them."""
        super().__init__()
        for name in ("mean", "std"):
            self.register_buffer(name, torch.from_numpy(np.array(actor[f"{NORMAL}_{name}"], np.float32)))
        *body, last = layers(part(actor, "mlp."))
        assert isinstance(last, torch.nn.Linear)
        self.body = torch.nn.Sequential(*body)
        self.head = torch.nn.Parameter(torch.cat([last.weight, last.bias[:, None]], dim=1).detach())
        self.register_buffer("spread", torch.from_numpy(np.array(actor[STD], np.float32)))
        self.joints, self.wide = self.head.shape[0], self.head.shape[1] - 1

    def features(self, o: torch.Tensor) -> torch.Tensor:
        seen = self.body((o - self.mean) / (self.std + EPS))
        return torch.cat([seen, torch.ones_like(seen[..., :1])], dim=-1)

    def forward(self, o: torch.Tensor) -> torch.Tensor:
        return self.features(o) @ self.head.T

    def with_heads(self, o: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        """Actions of robots each of which has a head of its own. Shape of heads: (n, joints, wide + 1)."""
        return (heads @ self.features(o)[..., None])[..., 0]

    def arrays(self) -> dict[str, torch.Tensor]:
        """Body and head by the names that a training keeps them under."""
        last = f"mlp.{len(self.body)}."
        body = {f"mlp.{name}": value for name, value in self.body.state_dict().items()}
        head = self.head.detach()
        return {**body, f"{last}weight": head[:, :-1], f"{last}bias": head[:, -1]}


@dataclasses.dataclass(frozen=True)
class Plain:
    """A policy that is told nothing, as its training left it."""

    folder: Path
    run: Run
    contract: Contract
    networks: dict[str, dict[str, Array]]
    columns: tuple[str, ...]
    """What its critic sees."""

    def headed(self) -> Headed:
        """Its network taken apart."""
        try:
            return Headed(self.networks["actor"])
        except (KeyError, RuntimeError, ValueError, AssertionError) as error:
            raise BadInput(f"{self.folder}: its networks are not those of its contract ({type(error).__name__})") from None

    def into(self, folder: Path) -> Plain:
        """The same in another folder."""
        return dataclasses.replace(self, folder=folder)

    def save_networks(self, network: Headed, folder: Path) -> None:
        """Write networks from which any training goes on: those of an adapted policy, and the critic as it was."""
        actor = {name: torch.from_numpy(np.array(value)) for name, value in self.networks["actor"].items()} | network.arrays()
        critic = {name: torch.from_numpy(np.array(value)) for name, value in self.networks["critic"].items()}
        save_networks(folder / NETWORKS, {"actor_state_dict": actor, "critic_state_dict": critic}, self.columns)


def load_plain(folder: Path) -> Plain:
    """The policy in a folder of a training; bad input for one with a memory or a context."""
    contract = load_policy(folder).contract
    contract.must_run_on_a_robot()
    if contract.recurrent is not None or contract.context is not None:
        raise BadInput(f"{folder}: what adapts is the last layer of a plain policy, and this one has a memory or a context")
    return Plain(folder, load_run(folder), contract, *load_networks(folder / NETWORKS))
