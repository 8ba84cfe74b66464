"""From the network's output to joint targets, as the contract says."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.errors import BadInput
from gapless.policy.contract import Contract, Reference, columns_of

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
    """What the driven joints are told, before any gait or filter. Shape: (n, driven joints)."""
    scale, offset = contract.action.scale, contract.action.offset
    if scale is None or offset is None:
        raise BadInput("the contract does not say the action's " + ("scale" if scale is None else "offset"))
    return clipped(contract, action) * scale + offset


def targets(
    contract: Contract,
    action: ArrayLike,
    last: ArrayLike | None = None,
    time: ArrayLike | None = None,
    command: ArrayLike | None = None,
) -> Array:
    """Targets of all joints in the contract's order; a joint that the policy does not drive stays where it is by default.

    Args:
        contract: of the policy.
        action: the network's output, shape (n, driven joints).
        last: the targets of the period before, which the filter needs; without them targets start unfiltered.
        time: since each robot's reset when the network was asked: 0 for its first action, then whole control periods [s],
            shape (n,). Only a reference gait needs it.
        command: what the network was asked for, shape (n, commands). Only a reference gait needs it.
    """
    driven = processed(contract, action)
    if contract.action.reference is not None:
        driven = driven + _gait(contract, contract.action.reference, len(driven), time, command)
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


def _gait(contract: Contract, reference: Reference, n: int, time: ArrayLike | None, command: ArrayLike | None) -> Array:
    """What a reference adds to the targets of the driven joints. Shape: (n, driven joints)."""
    if time is None or command is None:
        raise BadInput("the policy's action is a residual on a gait: its targets need the time and the command")
    time, command, commands = np.asarray(time, float), np.asarray(command), tuple(contract.commands)
    if time.shape != (n,) or command.shape != (n, len(commands)):
        raise BadInput(f"time and command have shapes {time.shape} and {command.shape}, not {(n,)} and {(n, len(commands))}")
    table = np.array(reference.table)
    share, row = np.modf(time * reference.frequency % 1.0 * len(table))
    before = row.astype(int) % len(table)  # a phase just below a whole cycle may round up to one
    added = table[before] + share[:, None] * (table[(before + 1) % len(table)] - table[before])
    return np.asarray(added * command[:, columns_of(reference.commands, commands)].any(axis=1, keepdims=True))
