"""From the network's output to joint targets, as the contract says."""

import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.policy.contract import Contract
from gapless.policy.gait import Gait


def clipped(contract: Contract, action: ArrayLike) -> Array:
    """The network's output within its bounds. Shape: (n, driven joints)."""
    action, joints = np.asarray(action, float), len(contract.action.joints)
    if action.ndim != 2 or action.shape[1] != joints:
        raise BadInput(f"the policy drives {joints} joints, but the action has shape {action.shape}")
    if contract.action.clip is None:
        return action
    return np.clip(action, *contract.action.clip)


def processed(contract: Contract, action: ArrayLike) -> Array:
    """Targets of the driven joints before any gait or filter. Shape: (n, driven joints)."""
    scale, offset = contract.action.scale, contract.action.offset
    if scale is None or offset is None:
        raise BadInput("the contract lacks the action's " + ("scale" if scale is None else "offset"))
    return clipped(contract, action) * scale + offset


def targets(
    contract: Contract,
    action: ArrayLike,
    last: ArrayLike | None = None,
    gait: Gait | None = None,
    command: ArrayLike | None = None,
) -> Array:
    """Targets of all joints, in the contract's order; joints that the policy does not drive hold their default position.

    Args:
        contract: of the policy.
        action: the network's output, shape (n, driven joints).
        last: targets of the previous period, shape (n, joints), which the filter needs; without them targets are unfiltered.
        gait: as it was when the network was asked. Only a policy that adds to a reference gait needs it.
        command: what the network was asked for, shape (n, commands). Needed with `gait`.
    """
    driven = processed(contract, action)
    if contract.action.reference is not None:
        if gait is None or command is None:
            raise BadInput("the policy's action is added to a reference gait: its targets need the gait and the command")
        if (shape := np.shape(command)) != (expected := (len(driven), len(contract.commands))):
            raise BadInput(f"the command has shape {shape}, not {expected}")
        driven = driven + gait.offset(command)
    names, drives = contract.joints.names, contract.action.joints
    target = driven
    if drives != names:
        target = np.empty((len(driven), len(names)))
        target[:] = _rest(contract)
        target[:, [names.index(j) for j in drives]] = driven
    if contract.action.filter is not None and last is not None:
        last = np.asarray(last, float)
        target = last + contract.action.filter * (target - last)
    return target


def _rest(contract: Contract) -> float | tuple[float, ...]:
    """Target of joints that the policy does not drive."""
    if contract.action.kind != "position":
        return 0.0
    if contract.joints.default_pos is None:
        raise BadInput("the contract lacks the default position (joints.default_pos), which joints it does not drive hold")
    return contract.joints.default_pos
