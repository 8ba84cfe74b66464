"""Encoder: a policy's network that sees a short code of its context, learned with it (Kumar et al. 2021, Lee et al. 2020)."""

from typing import Any

import torch
from rsl_rl.models import MLPModel

from gapless.errors import BadInput
from gapless.policy import Contract

HIDDEN = 64


class Encoded(torch.nn.Module):
    """A network before which the last columns go through an encoder, whose output is between -1 and 1."""

    def __init__(self, body: torch.nn.Module, columns: int, latent: int):
        super().__init__()
        self.columns, self.body = columns, body
        self.encoder = encoder(columns, latent)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        code = self.encoder(seen[:, -self.columns :])
        return self.body(torch.cat([seen[:, : -self.columns], code], dim=1))


def encoder(columns: int, latent: int) -> torch.nn.Sequential:
    """From normalised parameters to a code."""
    nn = torch.nn
    return nn.Sequential(nn.Linear(columns, HIDDEN), nn.LeakyReLU(), nn.Linear(HIDDEN, latent), nn.Tanh())


class EncodedModel(MLPModel):
    """rsl-rl-lib's network with an encoder of its last columns."""

    def __init__(self, *given: Any, columns: int, latent: int, **named: Any):
        self._less = columns - latent
        super().__init__(*given, **named)
        self.mlp: torch.nn.Module = Encoded(self.mlp, columns, latent)

    def _get_latent_dim(self) -> int:
        return int(super()._get_latent_dim()) - self._less


def with_encoder(configuration: dict[str, Any], contract: Contract, latent: int) -> dict[str, Any]:
    """rsl-rl-lib's configuration of a policy whose context, its last term, is encoded."""
    last = contract.observation.terms[-1]
    if last.kind != "context":
        raise BadInput("an encoder needs a context as the observation's last term: train a teacher")
    if configuration["actor"]["class_name"] != "MLPModel":
        raise BadInput("a policy with a memory has no encoder of its context: leave out the memory, or the encoder")
    actor = {**configuration["actor"], "class_name": "gapless.learn.encoder:EncodedModel"}
    return {**configuration, "actor": {**actor, "columns": last.dim, "latent": latent}}
