"""Policy: a network and its contract, the one source of truth for training, check and robot.

    from gapless.policy import Observer, load_policy, targets
    policy = load_policy("runs/walk")
    observer = Observer(policy.contract, n)
    action = policy(observer(readings, command, action))
    targets(policy.contract, action)                        # of all joints, in the contract's order

Nothing here knows a simulator; torch and onnx are only needed to write a policy.
"""

from gapless.policy.act import clipped, processed, targets
from gapless.policy.contract import Contract
from gapless.policy.estimate import Estimator
from gapless.policy.folder import load_policy, save_policy
from gapless.policy.gait import Gait
from gapless.policy.network import Policy
from gapless.policy.observe import Observer
from gapless.policy.onnx import onnx_of, recurrent_of
from gapless.policy.parts import (
    CLOCKS,
    Action,
    Context,
    Conventions,
    Joints,
    Observation,
    Reference,
    RobotIdentity,
    Source,
    Term,
    Timing,
)
from gapless.policy.pilot import ACTION_KINDS, Pilot, check_drives
from gapless.policy.readers import Candidate, Origin, read_policy
from gapless.policy.runtime import Network, Runtime
