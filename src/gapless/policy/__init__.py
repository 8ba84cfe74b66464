"""Policy: a network and its contract, the one source of truth for training, check and robot.

    from gapless.policy import Observer, load, targets
    policy = load("runs/walk")
    observer = Observer(policy.contract, n)
    action = policy(observer(readings, command, action))
    targets(policy.contract, action)                        # of all joints, in the contract's order

Nothing here knows a simulator; torch and onnx are only needed to write a policy.
"""

from gapless.policy.act import targets
from gapless.policy.contract import Contract, contract_of
from gapless.policy.folder import load, save
from gapless.policy.network import Policy
from gapless.policy.observe import Observer

__all__ = ["Contract", "Observer", "Policy", "contract_of", "load", "save", "targets"]
