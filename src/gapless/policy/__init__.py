"""Policy: a network and its contract, the one source of truth for training, check and robot.

    from gapless.policy import Observer, load, targets
    policy = load("runs/walk")
    observer = Observer(policy.contract, n)
    action = policy(observer(readings, command, action))
    targets(policy.contract, action)                        # of all joints, in the contract's order

Nothing here knows a simulator; torch and onnx are only needed to write a policy.
"""

from gapless.policy import checks
from gapless.policy.act import targets
from gapless.policy.contract import (
    Action,
    Contract,
    Conventions,
    Joints,
    Observation,
    Reference,
    Robot,
    Source,
    Term,
    Timing,
    contract_of,
)
from gapless.policy.estimate import Estimator
from gapless.policy.export import mjlab_keys, onnx_of, recurrent_of
from gapless.policy.folder import load, save
from gapless.policy.network import Policy
from gapless.policy.observe import Observer
from gapless.policy.step_when_pushed import Wake

__all__ = [
    "Action",
    "Contract",
    "Conventions",
    "Estimator",
    "Joints",
    "Observation",
    "Observer",
    "Policy",
    "Reference",
    "Robot",
    "Source",
    "Term",
    "Timing",
    "Wake",
    "checks",
    "contract_of",
    "load",
    "mjlab_keys",
    "onnx_of",
    "recurrent_of",
    "save",
    "targets",
]
