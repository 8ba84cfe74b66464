"""Expert: a teacher's network taken apart, `act(o, z)` and `encode(parameters)`, for students, searches and exports."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.learn import NETWORKS, Run, encoder, load_networks, load_run, with_context
from gapless.policy import Context, Contract, Observation, load_policy

EPS = 1e-2
"""What rsl-rl-lib's normaliser adds to a standard deviation."""


class Expert(torch.nn.Module):
    """The networks of a teacher. Shapes: o (n, observed), parameters (n, context), z (n, size)."""

    mean: torch.Tensor
    std: torch.Tensor
    centre: torch.Tensor
    spread: torch.Tensor

    def __init__(self, actor: Mapping[str, Array], contract: Contract, raw: bool):
        """Build the networks from plain arrays, as a training keeps them.

        Args:
            actor: arrays by name.
            contract: of the teacher.
            raw: whether z are the parameters, which the policy then encodes itself; else their code.
        """
        super().__init__()
        assert contract.context is not None
        self.told = len(contract.context.names)
        """Parameters that the teacher is told."""
        self.observed = contract.width - self.told
        for name in ("mean", "std"):
            self.register_buffer(name, torch.from_numpy(np.array(actor[f"obs_normalizer._{name}"], np.float32)))
        latent = "mlp.encoder.0.weight" in actor
        self.encoder = encoder.encoder(self.told, len(actor["mlp.encoder.2.bias"])) if latent else None
        if self.encoder is not None:
            self.encoder.load_state_dict(part(actor, "mlp.encoder."))
        self.body = layers(part(actor, "mlp.body." if latent else "mlp."))
        self.coded = latent and not raw
        """Whether z is a code of the parameters; else the parameters."""
        self.size = len(actor["mlp.encoder.2.bias"]) if self.coded else self.told
        """Numbers of z."""
        n, still = self.observed, torch.zeros(1, self.size)
        self.register_buffer("centre", torch.cat([self.mean[:, :n], still], dim=1) if self.coded else self.mean)
        self.register_buffer("spread", torch.cat([self.std[:, :n], still + 1 - EPS], dim=1) if self.coded else self.std)

    def observation(self, o: torch.Tensor) -> torch.Tensor:
        """What was observed, normalised."""
        n = self.observed
        return (o - self.mean[:, :n]) / (self.std[:, :n] + EPS)

    def _normal(self, parameters: torch.Tensor) -> torch.Tensor:
        n = self.observed
        return (parameters - self.mean[:, n:]) / (self.std[:, n:] + EPS)

    def _code(self, normal: torch.Tensor) -> torch.Tensor:
        return normal if self.encoder is None else self.encoder(normal)

    def encode(self, parameters: torch.Tensor) -> torch.Tensor:
        """The z of worlds with these parameters."""
        return self._code(self._normal(parameters)) if self.coded else parameters

    def head(self, normal: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """The action without exploration, from a normalised observation."""
        return self.body(torch.cat([normal, z if self.coded else self._code(self._normal(z))], dim=1))

    def act(self, o: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """The same from an observation as it is."""
        return self.head(self.observation(o), z)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """The policy whose last columns are z, as it runs with a z that was searched; a learned z is not scaled."""
        seen = (seen - self.centre) / (self.spread + EPS)
        normal, z = seen[:, : self.observed], seen[:, self.observed :]
        return self.body(torch.cat([normal, z if self.coded else self._code(z)], dim=1))


@dataclasses.dataclass(frozen=True)
class Teacher:
    """A teacher as its training left it."""

    folder: Path
    run: Run
    contract: Contract
    expert: Expert

    @property
    def context(self) -> Context:
        assert self.contract.context is not None
        return self.contract.context

    @property
    def names(self) -> tuple[str, ...]:
        """Of z."""
        return tuple(f"z{i}" for i in range(self.expert.size)) if self.expert.coded else self.context.names

    @property
    def ends(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Values of the parameters at z = -1 and 1, where z are parameters."""
        return (None, None) if self.expert.coded else (self.context.low, self.context.high)

    def given(self, value: Array, provider: str = "search") -> Contract:
        """The contract of the policy with a z that stays."""
        low, high = self.ends
        context = Context(self.names, provider, low, high, tuple(np.asarray(value, float).tolist()))
        return with_context(dataclasses.replace(self.contract, context=context, observation=self.plain), context)

    @property
    def plain(self) -> Observation:
        """What is observed without the context."""
        terms = tuple(t for t in self.contract.observation.terms if t.kind != "context")
        return dataclasses.replace(self.contract.observation, terms=terms)


def load_teacher(folder: Path, raw: bool = False) -> Teacher:
    """The teacher in a folder of a training; bad input for a policy without a context.

    raw: whether z are the parameters; else their code, where the teacher has an encoder.
    """
    contract = load_policy(folder).contract
    if not contract.teaches:
        raise BadInput(
            f"{folder}: its policy was trained without being told a context, so there is none to estimate or to search: "
            "train one with gapless train --adapt teacher"
        )
    networks, _ = load_networks(folder / NETWORKS)
    try:
        expert = Expert(networks["actor"], contract, raw)
    except (KeyError, RuntimeError, ValueError) as error:
        raise BadInput(f"{folder}: its networks are not those of its contract ({type(error).__name__})") from None
    return Teacher(folder, load_run(folder), contract, expert.eval())


def part(arrays: Mapping[str, Array], prefix: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): torch.from_numpy(np.array(a)) for k, a in arrays.items() if k.startswith(prefix)}


def layers(state: dict[str, torch.Tensor]) -> torch.nn.Sequential:
    """Linear layers with leaky ones between, as the training's (`PPOSettings.rsl`)."""
    count = 1 + max(int(name.partition(".")[0]) for name in state)
    made: list[torch.nn.Module] = [
        _linear(state[f"{i}.weight"]) if f"{i}.weight" in state else torch.nn.LeakyReLU() for i in range(count)
    ]
    body = torch.nn.Sequential(*made)
    body.load_state_dict(state)
    return body


def _linear(weight: torch.Tensor) -> torch.nn.Linear:
    outputs, inputs = weight.shape
    return torch.nn.Linear(inputs, outputs)
