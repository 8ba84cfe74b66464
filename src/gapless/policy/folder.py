"""A policy as a folder: the network with its contract inside, a readable copy of the contract, and frames that prove both.

policy.onnx     the network, for any number of robots; the contract is in its metadata
contract.json   the same contract to read, and the hashes of the other two files
golden.npz      observations of training and the actions that were given to them
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless import files as disk
from gapless.errors import BadInput
from gapless.plain import read_json
from gapless.policy.contract import Contract, parse_contract, readable
from gapless.policy.network import Policy
from gapless.policy.onnx import KEY, with_contract

NETWORK, CONTRACT, GOLDEN = "policy.onnx", "contract.json", "golden.npz"
LIMITS = {NETWORK: 256 << 20, CONTRACT: 4 << 20, GOLDEN: 64 << 20}
"""Bytes that each file may have; a network of a walking robot has 0.1 to 10 MB."""
PARITY = 1e-5
"""Largest difference to a golden action, relative where the action is above 1: float32 rounds to 1e-7, layers add up."""
NEEDED = ("observation.terms", "timing.control_dt", "joints.default_pos", "action.scale", "action.offset")
GAINS = ("joints.kp", "joints.kd")


def save_policy(folder: str | Path, contract: Contract, model: bytes, observation: ArrayLike, action: ArrayLike) -> Policy:
    """Write a policy, after it gave the golden actions to the golden observations; returns it as `load_policy` would.

    Args:
        folder: made where it does not exist; other files in it stay.
        contract: complete enough to run the policy.
        model: the network as ONNX, with a dynamic batch.
        observation: about 64 golden frames from training, shape (frames, width); of one robot in a row from its reset where the
            network has memory.
        action: what the trained network gave to them, shape (frames, driven joints).
    """
    needed = NEEDED + GAINS if contract.action.kind == "position" else NEEDED
    missing = [name for name in needed if name in contract.unknown]
    if missing:
        raise BadInput(f"the contract does not say {', '.join(missing)}, without which nobody can run the policy")
    observation, action = np.asarray(observation, np.float32), np.asarray(action, np.float32)
    model = with_contract(model, contract)
    policy = Policy(contract, model)
    _prove(policy, observation, action)
    folder = Path(folder)
    with disk.refusing(f"{folder}: cannot be made", OSError):
        folder.mkdir(parents=True, exist_ok=True)
    with disk.atomic(folder / NETWORK) as path:
        path.write_bytes(model)
    with disk.atomic(folder / GOLDEN) as path, path.open("wb") as file:
        np.savez(file, allow_pickle=False, observation=observation, action=action)
    # last, because its hashes tell whether the others belong to it
    files = {name: disk.sha256(folder / name) for name in (NETWORK, GOLDEN)}
    with disk.atomic(folder / CONTRACT) as path:
        path.write_text(readable(json.loads(contract.json()) | {"files": files}) + "\n")
    return policy


def load_policy(folder: str | Path) -> Policy:
    """The policy of a folder, after every file was found to belong to it and the golden frames to come out."""
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(
            f"{folder}: "
            + (f"is not a policy folder, which holds {', '.join(LIMITS)}" if folder.exists() else "there is no such folder")
        )
    for name, limit in LIMITS.items():
        path = folder / name
        if not path.is_file():
            raise BadInput(f"{folder}: has no {name}; a policy folder holds {', '.join(LIMITS)}")
        if (size := disk.regular(path).stat().st_size) > limit:
            raise BadInput(f"{path}: {size} bytes, but at most {limit} are read")
    table = read_json(folder / CONTRACT, LIMITS[CONTRACT])
    files = table.pop("files", None)
    if not isinstance(files, dict):
        raise BadInput(f"{folder / CONTRACT}: has no hashes of the other files; save the policy again")
    with disk.within(folder / CONTRACT):
        contract = parse_contract(table)
    model = (folder / NETWORK).read_bytes()
    hashes = {NETWORK: hashlib.sha256(model).hexdigest(), GOLDEN: disk.sha256(folder / GOLDEN)}
    for name, given in hashes.items():
        if files.get(name) != given:
            raise BadInput(f"{folder / name}: is not the file that {CONTRACT} was written with; save the policy again")
    observation, action = _golden(folder / GOLDEN)
    with disk.within(folder / NETWORK):
        policy = Policy(contract, model)
        if parse_contract(policy.metadata.get(KEY, "")) != contract:
            raise BadInput(f"its metadata holds another contract than {CONTRACT}: save the policy again")
        _prove(policy, observation, action)
    return policy


def _golden(path: Path) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    disk.check_zip(path).close()  # unpacks to no more than it should
    # zipfile, zlib and numpy each have their own errors for damaged data
    with disk.refusing(f"{path}: the golden frames are damaged", Exception), np.load(path, allow_pickle=False) as arrays:
        observation, action = arrays["observation"], arrays["action"]
    if observation.dtype != np.float32 or action.dtype != np.float32:
        raise BadInput(f"{path}: the golden frames are not float32")
    return observation, action


def _prove(policy: Policy, observation: NDArray[np.float32], action: NDArray[np.float32]) -> None:
    """Refuse a network that does not give the golden actions."""
    joints = policy.contract.action.joints
    if observation.ndim != 2 or not len(observation) or action.shape != (len(observation), len(joints)):
        raise BadInput(
            f"golden frames: observations of shape (frames, {policy.contract.width}) and actions of (frames, {len(joints)}) "
            f"were expected, not {observation.shape} and {action.shape}"
        )
    if not np.isfinite(observation).all() or not np.isfinite(action).all():
        raise BadInput("golden frames: there are numbers that are not finite among them")
    if not observation.any():
        raise BadInput("golden frames: all observations are zero, which proves nothing; take them from training")
    batches = observation[:, None] if policy.contract.recurrent else observation[None]
    given = np.concatenate([policy(batch) for batch in batches])
    policy.reset()
    off = np.abs(given - action) / np.maximum(1.0, np.abs(action))
    frame, joint = np.unravel_index(int(np.argmax(np.where(np.isnan(off), np.inf, off))), off.shape)
    if not off[frame, joint] <= PARITY:
        raise BadInput(
            f"golden frames: the network gives {given[frame, joint]:.6g} for {joints[joint]} in frame {frame}, "
            f"and training gave {action[frame, joint]:.6g}; it is another network, or its normaliser or memory is missing"
        )
