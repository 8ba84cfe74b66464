"""From the network's output to joint targets, as the contract says."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.errors import BadInput
from gapless.policy.contract import Contract

Array = NDArray[np.float64]


def clipped(contract: Contract, action: ArrayLike) -> Array:
    """The network's output within its bounds. Shape: (n, driven joints)."""
    action, joints = np.asarray(action, float), len(contract.action.joints)
    if action.ndim != 2 or action.shape[1] != joints:
        raise BadInput(f"the policy drives {joints} joints, but the action has shape {action.shape}")
    if contract.action.clip is None:
        return action
    return np.clip(action, *contract.action.clip)


def processed(contract: Contract, action: ArrayLike) -> Array:
    """What the driven joints are told, before any filter. Shape: (n, driven joints)."""
    scale, offset = contract.action.scale, contract.action.offset
    if scale is None or offset is None:
        raise BadInput("the contract does not say the action's " + ("scale" if scale is None else "offset"))
    return clipped(contract, action) * scale + offset


def targets(contract: Contract, action: ArrayLike, last: ArrayLike | None = None) -> Array:
    """Targets of all joints in the contract's order; a joint that the policy does not drive stays where it is by default.

    Args:
        contract: of the policy.
        action: the network's output, shape (n, driven joints).
        last: the targets of the period before, which the filter needs; without them targets start unfiltered.
    """
    driven = processed(contract, action)
    names, drives = contract.joints.names, contract.action.joints
    if drives == names:
        told = driven
    else:
        told = np.empty((len(driven), len(names)))
        told[:] = _rest(contract)
        told[:, [names.index(j) for j in drives]] = driven
    if contract.action.filter is not None and last is not None:
        last = np.asarray(last, float)
        told = last + contract.action.filter * (told - last)
    return told


def _rest(contract: Contract) -> float | tuple[float, ...]:
    """What joints are told that the policy does not drive."""
    if contract.action.kind != "position":
        return 0.0
    if contract.joints.default_pos is None:
        raise BadInput("the contract does not say the default position, where joints stay that the policy does not drive")
    return contract.joints.default_pos
