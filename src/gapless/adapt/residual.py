"""Residual policy learning (Silver et al. 2018, Johannink et al. 2019): a network on top of a policy, zero at the start.

The policy below stays as it is. The first of the policies that are compared on unseen robots is that policy alone, so that
what is kept is never worse than it there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from gapless.adapt.improve import improve
from gapless.arrays import Bools
from gapless.errors import BadInput
from gapless.learn import UNSEEN, Deterministic, Environment, Frame, Learner, Progress, Run, evaluate
from gapless.policy import Policy, load_policy, onnx_of, save_policy

STD = 0.1
"""Of exploration at first: much less than that of a policy from nothing, which would drown what is there."""


class OnTop(Environment):
    """An environment in which actions are added to those of a policy."""

    base: Policy
    _seen: Frame

    def reset(self, spread: bool = False) -> dict[str, Frame]:
        out = super().reset(spread)
        self._seen = out["policy"]
        return out

    def step(self, action: ArrayLike) -> Any:
        step = super().step(self.base(self._seen) + np.asarray(action, np.float32))
        self._seen = step.observation["policy"]
        return step


class Sum:
    """A policy and what was learned on top of it, as `evaluate` runs it."""

    def __init__(self, base: Policy, more: Any):
        self._base, self._more = base, more

    def __call__(self, observation: Frame) -> Frame:
        return np.asarray(self._base(observation) + self._more(observation), np.float32)

    def reset(self, which: Bools) -> None:
        """Neither has a memory."""


def train_residual(
    run: Run, base: Path, folder: Path, tell: Callable[[Progress, float], None] = lambda progress, best: None, threads: int = 0
) -> None:
    """Train a network on top of the policy in a folder, and leave both as one policy in another.

    Args:
        run: what a plain training would be given.
        base: folder of the policy below.
        folder: where; made if it does not exist.
        tell: told each iteration's progress and the best reward per second on unseen robots so far.
        threads: of physics, 0 for one per core.
    """
    below = load_policy(base)
    contract = below.contract
    if contract.recurrent is not None or contract.teaches:
        raise BadInput(f"{base}: nothing can be learned on top of a policy with a memory, or of a teacher")
    twin, task, belief = run.build()
    contract.columns(twin.joints)
    settings = dataclasses.replace(run.settings, std=STD, recurrent=0, entropy=0.0)
    torch.set_num_threads(1)

    def make(rng: np.random.Generator, hardness: float) -> Environment:
        made = OnTop(twin, task, settings.worlds, belief, rng, threads, contract)
        made.base, made.change_every = below, run.changes or np.inf
        return made

    learner = Learner(make, settings, run.seed)
    last = learner.alg.actor.mlp[-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
    folder.mkdir(parents=True, exist_ok=True)

    def judged(more: Deterministic) -> tuple[float, Callable[[], None]]:
        rng = np.random.default_rng([run.seed, 1 << 40])
        judge = run.environment(twin, task, UNSEEN, belief, rng, threads, contract)
        score, (seen, _) = evaluate(Sum(below, more), judge)

        def save() -> None:
            model = added((base / "policy.onnx").read_bytes(), onnx_of(more.network, contract.width))
            robot = dataclasses.replace(contract.robot, model_sha256=run.hashes()["robot"])
            named = dataclasses.replace(contract, robot=robot, source=dataclasses.replace(contract.source, run=folder.name))
            save_policy(folder, named, model, seen, below(seen) + more(seen))

        return score, save

    improve(learner, judged, tell)
    dataclasses.replace(run, teacher=False, latent=0).save(folder)


def added(one: bytes, other: bytes) -> bytes:
    """Two networks from the same observation as one, whose action is the sum of theirs."""
    import onnx
    from onnx import TensorProto, compose, helper

    parts = [compose.add_prefix(onnx.load_model_from_string(m), p) for m, p in ((one, "below/"), (other, "more/"))]
    nodes: list[Any] = []
    for part in parts:
        own = part.graph.input[0].name
        for node in part.graph.node:
            node.input[:] = ["obs" if name == own else name for name in node.input]
        nodes += part.graph.node
    nodes.append(helper.make_node("Add", [part.graph.output[0].name for part in parts], ["actions"]))
    ends = [p.graph.input[0].type.tensor_type.shape.dim[1].dim_value for p in parts[1:]]
    joints = parts[1].graph.output[0].type.tensor_type.shape.dim[1].dim_value
    shapes = [("obs", ends[0]), ("actions", joints)]
    inp, out = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width or None]) for name, width in shapes)
    graph = helper.make_graph(nodes, "residual", [inp], [out], [t for p in parts for t in p.graph.initializer])
    model = helper.make_model(graph, opset_imports=parts[0].opset_import, ir_version=parts[0].ir_version)
    return bytes(model.SerializeToString())
