"""Readers of policies that others trained: one file a format, every field with its source, nothing guessed.

candidate = read_policy("unitree_rl_lab_g1", load_robot("g1.xml"))
candidate.contract.joints.kp
candidate.origins["joints.kp"]          # deploy.yaml:4 (in the order of the motors)
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.policy.contract import Contract
from gapless.policy.network import Policy
from gapless.policy.readers import holosoma, leapp, mjlab, override as stating, own, rl_sar, unitree_rl_gym, unitree_rl_lab
from gapless.policy.readers.draft import FILE, FRAMEWORK, INFERRED, USER, Draft, Origin
from gapless.policy.readers.files import PolicyFiles, find_files
from gapless.robots import RobotModel

FORMATS: tuple[ModuleType, ...] = (leapp, own, mjlab, holosoma, unitree_rl_lab, unitree_rl_gym, rl_sar)
"""In the order in which they are tried, first the one that says how to open its network. None reads a bare network."""
Golden = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """A policy as its files give it, before anything is believed."""

    name: str
    framework: str
    policy: Policy | None
    """None where the contract is not known well enough to open the network."""
    contract: Contract | None
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Where each field comes from, by dotted name."""
    missing: tuple[str, ...] = ()
    """Fields that are unknown and without which nothing can be checked."""
    notes: tuple[str, ...] = ()
    golden: Golden | None = None
    """Observations (frames, width) and actions (frames, driven joints) of training."""
    model: bytes = b""
    """The network as ONNX."""
    width: int | None = None
    outputs: int | None = None
    memoryless: bool = False
    """Whether the contract knows nothing of a memory that the network takes."""
    normalizer: bool = False
    """Whether the network begins with a shift or scale of its inputs."""


def read_policy(
    path: str | os.PathLike[str],
    robot: RobotModel | None = None,
    override: str | os.PathLike[str] | None = None,
    settings: Sequence[str] = (),
) -> Candidate:
    """A policy of any known format.

    Args:
        path: its folder, its network, or its configuration.
        robot: whose joints it drives; formats that count joints need it for their names.
        override: a TOML or YAML file with what the files do not say.
        settings: NAME=VALUE pairs that count against what files say, such as "timing.control_dt=0.02".
    """
    files = find_files(Path(path))
    joints = robot.joints if robot else ()
    reader = next((r for r in FORMATS if r.can_read(files)), None)
    with disk.within(path):
        draft = reader.read(files, joints) if reader else Draft("")
        draft.width, draft.outputs = files.network.width, files.network.outputs
        defaults = getattr(reader, "TERMS", {})
        if override is not None:
            stating.apply(draft, stating.read_override(Path(override)), str(override), joints, defaults)
        if settings:
            stating.apply(draft, stating.read_settings(settings), "--set", joints, defaults, wins=True)
        if draft.get("action.kind") in (None, "position"):
            draft.suppose("action.offset", draft.get("joints.default_pos"), "targets are offsets from the default pose")
        return _candidate(files, draft)


def _candidate(files: PolicyFiles, draft: Draft) -> Candidate:
    network = files.network
    common = {
        "name": str(files.network_path),
        "framework": draft.framework or "a bare network",
        "origins": dict(draft.origins),
        "golden": own.golden(files),
        "model": network.model,
        "width": network.width,
        "outputs": network.outputs,
        "normalizer": network.normalizer,
    }
    notes = (*draft.notes, *network.notes)
    if missing := draft.missing():
        return Candidate(policy=None, contract=None, missing=missing, notes=notes, **common)  # type: ignore[arg-type]
    forgotten = network.recurrent is not None and draft.framework == "gapless" and not draft.get("recurrent")
    if network.recurrent is not None:
        draft.suppose("recurrent", network.recurrent, "pairs of inputs and outputs of the network", INFERRED)
    _must_fit(draft, network.width)
    contract = draft.contract()
    policy = Policy(contract, network.model)
    common["origins"] = dict(draft.origins)
    return Candidate(policy=policy, contract=contract, notes=notes, memoryless=forgotten, **common)  # type: ignore[arg-type]


def _must_fit(draft: Draft, width: int | None) -> None:
    """Refuse a network of another width, with the terms that could be missing or too many."""
    terms = [t for t in draft.values["observation.terms"] if isinstance(t, dict)]
    sizes = {str(t.get("name")): t.get("dim", 0) * t.get("history", 1) for t in terms}
    if width is None or not all(isinstance(s, int) for s in sizes.values()) or sum(sizes.values()) == width:
        return
    off = width - sum(sizes.values())
    if off < 0:
        what = [n for n, s in sizes.items() if s == -off]
    else:
        known = {"velocity": 3, "gyro": 3, "gravity": 3, "command": 3, "a gait clock": 2, "q, dq or last_action": draft.outputs}
        kinds = {t.get("kind") for t in terms}
        what = [n for n, s in known.items() if s == off and n not in kinds]
    frames = sum(t.get("dim", 0) for t in terms)
    if not what and frames and width % frames == 0:
        what = [f"a history of {width // frames} frames"]
    hint = f"; {' or '.join(what)} could be {'too many' if off < 0 else 'missing'}" if what else ""
    raise BadInput(f"the terms make {sum(sizes.values())} numbers ({sizes}), and the network takes {width}{hint}")
