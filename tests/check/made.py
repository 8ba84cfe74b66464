"""Policies and engines to test with."""

import pytest

from gapless.check import ENGINES, installed
from gapless.learn import build_contract, task_of
from gapless.policy import Policy, onnx_of
from gapless.twin import Twin


def still(twin: Twin, task: str = "velocity") -> Policy:
    """A policy that always holds the home pose."""
    torch = pytest.importorskip("torch", reason="pip install 'gapless[learn]' to make a policy")
    contract = build_contract(twin, task_of(task, twin))
    network = torch.nn.Linear(contract.width, len(contract.action.joints))
    torch.nn.init.zeros_(network.weight)
    torch.nn.init.zeros_(network.bias)
    return Policy(contract, onnx_of(network, contract.width))


def engines() -> list[object]:
    """All engines as parameters of a test; those that are missing say how they are installed."""
    return [
        pytest.param(e, marks=pytest.mark.skipif(not installed(e), reason=f"{e} is missing: pip install 'gapless[engines]'"))
        for e in ENGINES
        if e != "mujoco"
    ]
