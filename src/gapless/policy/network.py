"""Policy: a network with its contract, run by onnxruntime for any number of robots, its memory kept inside."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless import files as disk
from gapless.errors import BadInput
from gapless.policy.contract import Contract

Frame = NDArray[np.float32]


class Policy:
    """A network that was found to fit its contract.

    policy = load_policy("runs/walk")
    action = policy(observation)        # float32 (n, contract.width) to (n, driven joints)
    policy.reset(done)                  # memory of those robots, if it has any
    """

    def __init__(self, contract: Contract, model: bytes):
        """Open the network.

        Args:
            contract: what the network expects.
            model: the content of an ONNX file.
        """
        import onnxruntime

        self.contract = contract
        self.sha256 = hashlib.sha256(model).hexdigest()
        """Of the ONNX file."""
        options = onnxruntime.SessionOptions()
        # such networks are too small to share out: a second thread costs more than it does, and takes a core from the robot
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # onnxruntime has a kind of error for each cause and no common one
        with disk.refusing("the network cannot be opened; is its file whole?", Exception):
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        memory = contract.recurrent
        names = {i.name: i.shape for i in inputs}
        for name in memory.inputs if memory else ():
            if name not in names:
                raise BadInput(f"the contract names the memory {name!r}, but the network's inputs are {', '.join(names)}")
        self._input = _only([i for i in inputs if not memory or i.name not in memory.inputs], "input", "observation")
        _check(self._input, contract.width, "the contract's observation", "numbers")
        self._one_by_one = self._input.shape[0] == 1  # as most exporters of other frameworks leave it
        results = [o for o in outputs if not memory or o.name not in memory.outputs]
        action = _only(results, "output", "action")
        _check(action, len(contract.action.joints), "the contract's action", "joints")
        self._outputs = [action.name, *(memory.outputs if memory else ())]
        for name in self._outputs:
            if name not in [o.name for o in outputs]:
                raise BadInput(f"the contract names the memory {name!r}, which is no output of the network")
        self._shapes = {name: _memory_shape(name, names[name]) for name in (memory.inputs if memory else ())}
        self._state: dict[str, Frame] = {}

    def reset(self, which: ArrayLike | None = None) -> None:
        """Forget what was seen of some robots (a mask of shape (n,)), or of all; their number may then change."""
        if which is None:
            self._state = {}
            return
        which = np.asarray(which)
        for state in self._state.values():
            if which.dtype != bool or which.shape != state.shape[1:2]:
                raise BadInput(f"a mask of robots must be bool of shape {state.shape[1:2]}, not {which.dtype} of {which.shape}")
            state[:, which] = 0.0

    @property
    def believes(self) -> Frame | None:
        """What a policy that finds its context in its history takes it to be now. Shape: (n, context)."""
        return self._state["z_in"][0] if "z_in" in self._state else None

    def __call__(self, observation: ArrayLike) -> Frame:
        """The action. Shape: (n, width) to (n, driven joints)."""
        observation = np.ascontiguousarray(observation, np.float32)
        if observation.ndim != 2 or observation.shape[1] != self.contract.width or not len(observation):
            raise BadInput(f"expected observations of shape (n, {self.contract.width}), got {observation.shape}")
        n = len(observation)
        if self._shapes and not self._state:
            self._state = {name: np.zeros((layers, n, size), np.float32) for name, (layers, size) in self._shapes.items()}
        for state in self._state.values():
            if state.shape[1] != n:
                raise BadInput(f"the policy remembers {state.shape[1]} robots, and now there are {n}: reset it first")
        batches = [slice(i, i + 1) for i in range(n)] if self._one_by_one else [slice(None)]
        with disk.refusing(f"the network fails on {n} observations", Exception):
            ran = [self._session.run(self._outputs, self._feed(observation, batch)) for batch in batches]
        action: Frame = np.concatenate([r[0] for r in ran])
        if action.shape != (n, len(self.contract.action.joints)):
            raise BadInput(f"the network returns shape {action.shape}, not {(n, len(self.contract.action.joints))}")
        for i, (name, state) in enumerate(self._state.items(), start=1):
            memory = np.concatenate([r[i] for r in ran], axis=1)
            if memory.shape != state.shape:
                raise BadInput(f"the network's memory {name!r} comes back with shape {memory.shape}, not {state.shape}")
            self._state[name] = memory
        return action

    def _feed(self, observation: Frame, batch: slice) -> dict[str, Frame]:
        return {self._input.name: observation[batch], **{name: state[:, batch] for name, state in self._state.items()}}


def _only(ports: list[Any], what: str, role: str) -> Any:
    if len(ports) != 1:
        names = ", ".join(p.name for p in ports) or "none"
        raise BadInput(f"the network needs one {what} for the {role} besides the contract's memory, but has {names}")
    if ports[0].type != "tensor(float)":
        raise BadInput(f"the network's {what} {ports[0].name!r} is {ports[0].type}, not tensor(float)")
    return ports[0]


def _check(port: Any, expected: int, whose: str, unit: str) -> None:
    shape = port.shape
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != expected):
        raise BadInput(f"{whose} has {expected} {unit}, but the network's {port.name!r} has shape {shape}")
    if isinstance(shape[0], int) and shape[0] != 1:
        raise BadInput(f"the network takes {shape[0]} robots at a time: export it with a dynamic first axis")


def _memory_shape(name: str, shape: list[Any]) -> tuple[int, int]:
    if len(shape) != 3 or not isinstance(shape[0], int) or not isinstance(shape[2], int) or shape[0] * shape[2] > 1_000_000:
        raise BadInput(f"the network's memory {name!r} has shape {shape}, not (layers, n, width)")
    return shape[0], shape[2]
