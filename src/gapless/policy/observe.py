"""Observation assembly for n robots at once: the one function that training, check and deployment all call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.errors import BadInput, unknown
from gapless.policy import act
from gapless.policy.clock import Clock
from gapless.policy.contract import CLOCKS, Contract, Term, columns_of

Frame = NDArray[np.float32]
Array = NDArray[np.float64]
Readings = Mapping[str, NDArray]
Fill = Callable[[Readings, Array, Array, Frame], None]
"""Writes a term's columns of a frame, from readings, command and last action."""


@dataclass(frozen=True)
class _Block:
    """Neighbouring columns of a frame that go into the observation together, frame by frame."""

    columns: slice
    """Of a frame."""
    history: int
    lag: int
    into: slice
    """Columns of the observation."""


class Observer:
    """Assembles what the network sees, with its history and clock.

        observer = Observer(contract, n)
        observation = observer(readings, command, action)      # float32, shape (n, contract.width)
        observer.reset(done)

    Every call is one control period. Readings follow the order of `contract.joints`, commands that of `contract.commands`,
    actions that of `contract.action.joints`.
    """

    def __init__(self, contract: Contract, n: int):
        if n < 1:
            raise BadInput(f"at least one robot is needed, not {n}")
        if not contract.observation.terms:
            raise BadInput("the contract does not say what goes into the network: name the terms of its observation")
        self.contract, self.n = contract, n
        self._start = np.ones(n, bool)
        observation = contract.observation
        self._fill: list[Fill] = []
        low, high, scale = [], [], []
        at = 0
        for term in observation.terms:
            self._fill.append(self._filler(term, slice(at, at + term.dim)))
            scale.append(np.broadcast_to(np.asarray(term.scale, np.float32), term.dim))
            bounds = (-np.inf, np.inf) if term.clip is None else term.clip
            low.append(np.broadcast_to(np.asarray(bounds[0], np.float32), term.dim))
            high.append(np.broadcast_to(np.asarray(bounds[1], np.float32), term.dim))
            at += term.dim
        self._scale = np.concatenate(scale)
        clips = any(t.clip is not None for t in observation.terms)
        self._clip = (np.concatenate(low), np.concatenate(high)) if clips else None
        self._clocks = {fill.term.name: fill for fill in self._fill if isinstance(fill, Clock)}
        self._blocks = _blocks(contract)
        self._depth = max(t.history + t.lag for t in observation.terms)
        self._newest_first = observation.order == "newest_first"
        # every frame is written twice, half a ring apart, so that any window of it is one slice
        self._ring = np.zeros((n, 2 * self._depth if self._depth > 1 else 0, at), np.float32)
        self._head = 0
        self._width = contract.width
        self._shapes = (n, len(contract.commands)), (n, len(contract.action.joints))

    def phase(self, name: str) -> Array:
        """The phase of a clock term now, which the next call will show, before any leg's lead [rad]. Shape: (n,)."""
        if name not in self._clocks:
            raise unknown("clock", name, self._clocks)
        return self._clocks[name].phase

    def reset(self, which: ArrayLike | None = None) -> None:
        """Forget the history of some robots (a mask of shape (n,)), or of all, and start their clocks anew."""
        if which is None:
            which = np.ones(self.n, bool)
        which = np.asarray(which)
        if which.dtype != bool or which.shape != (self.n,):
            raise BadInput(f"a mask of robots must be bool of shape ({self.n},), not {which.dtype} of {which.shape}")
        self._start |= which
        for clock in self._clocks.values():
            clock.reset(which)

    def __call__(self, readings: Readings, command: ArrayLike, action: ArrayLike) -> Frame:
        """The observation of this period. Shape: (n, width).

        Args:
            readings: by signal, of shape (n, columns): "q" and "dq" in the order of the contract's joints, "quat" (w first),
                "gyro", and the kinds of other terms.
            command: shape (n, commands).
            action: the network's last output, zeros after a reset; shape (n, driven joints).
        """
        command, action = np.asarray(command), np.asarray(action)
        if (command.shape, action.shape) != self._shapes:
            given = f"command and last action have shapes {command.shape} and {action.shape}"
            raise BadInput(f"{given}, not {self._shapes[0]} and {self._shapes[1]}")
        frame = np.empty((self.n, len(self._scale)), np.float32)
        for fill in self._fill:
            fill(readings, command, action, frame)
        if self._clip is not None:
            low, high = self._clip  # np.clip takes twice as long
            np.minimum(np.maximum(frame, low, out=frame), high, out=frame)
        frame *= self._scale
        return self._remember(frame) if self._depth > 1 else frame

    def _remember(self, frame: Frame) -> Frame:
        """The observation that ends with this frame."""
        depth, ring = self._depth, self._ring
        self._head = (self._head + (-1 if self._newest_first else 1)) % depth
        head = self._head
        ring[:, head] = ring[:, head + depth] = frame
        if self._start.any():
            repeat = self.contract.observation.warmup == "repeat"
            ring[self._start] = frame[self._start, None] if repeat else 0.0
            ring[:, head] = ring[:, head + depth] = frame
            self._start[:] = False
        observation = np.empty((self.n, self._width), np.float32)
        for block in self._blocks:
            first = head + block.lag if self._newest_first else head + depth + 1 - block.lag - block.history
            into = observation[:, block.into].reshape(self.n, block.history, -1)
            into[:] = self._ring[:, first : first + block.history, block.columns]
        return observation

    def _filler(self, term: Term, at: slice) -> Fill:
        contract, n = self.contract, self.n
        if term.kind in CLOCKS:
            return Clock(contract, term, at, n)
        if term.kind == "command":
            chosen = columns_of(term.commands, tuple(contract.commands))
            return lambda readings, command, action, frame: _put(frame, at, command[:, chosen])
        if term.kind == "last_action":
            chosen = columns_of(term.joints, contract.action.joints)
            shown = {"raw": lambda contract, action: action, "clipped": act.clipped, "processed": act.processed}[
                contract.observation.last_action
            ]
            return lambda readings, command, action, frame: _put(frame, at, shown(contract, action)[:, chosen])
        if term.kind == "gravity":
            down = contract.conventions.gravity[2]
            return lambda readings, command, action, frame: _gravity(_read(readings, "quat", term, (n, 4)), down, frame[:, at])
        chosen, shape = slice(None), (n, term.dim)
        if term.kind == "quat" and contract.conventions.quaternion == "xyzw":
            chosen = np.array([1, 2, 3, 0])
        elif term.kind in ("q", "dq") or term.joints:
            chosen, shape = columns_of(term.joints, contract.joints.names), (n, len(contract.joints.names))
        if term.kind != "q":
            return lambda readings, command, action, frame: _put(frame, at, _read(readings, term.kind, term, shape)[:, chosen])
        if contract.joints.default_pos is None:
            raise BadInput(f"term {term.name!r}: the contract does not say the default position that q is taken from")
        default = np.array(contract.joints.default_pos)[chosen]
        return lambda readings, command, action, frame: _put(frame, at, _read(readings, "q", term, shape)[:, chosen] - default)


def _blocks(contract: Contract) -> tuple[_Block, ...]:
    """Each term alone, or, frame by frame, neighbours that show the same frames."""
    groups: list[list[Term]] = []
    for term in contract.observation.terms:
        last = groups[-1][-1] if groups else None
        if last is not None and contract.observation.major == "frame" and (last.history, last.lag) == (term.history, term.lag):
            groups[-1].append(term)
        else:
            groups.append([term])
    found, column, into = [], 0, 0
    for group in groups:
        dim, history = sum(t.dim for t in group), group[0].history
        found.append(_Block(slice(column, column + dim), history, group[0].lag, slice(into, into + dim * history)))
        column, into = column + dim, into + dim * history
    return tuple(found)


def _put(frame: Frame, at: slice, value: NDArray) -> None:
    frame[:, at] = value


def _gravity(quat: Array, down: float, into: Frame) -> None:
    """The vertical in the base's axes, which is the third row of the rotation matrix; `down` is -1, or 1 to see it upward."""
    w, x, y, z = np.ascontiguousarray(quat.T) * np.sqrt(2.0)
    into[:, 0] = (x * z - w * y) * down
    into[:, 1] = (y * z + w * x) * down
    into[:, 2] = (1.0 - x * x - y * y) * down


def _read(readings: Readings, kind: str, term: Term, shape: tuple[int, int]) -> NDArray:
    if kind not in readings:
        raise BadInput(f"term {term.name!r}: {unknown('reading', kind, readings)}")
    value = readings[kind]
    if value.shape != shape:
        raise BadInput(f"term {term.name!r}: reading {kind!r} has shape {value.shape}, not {shape}")
    return value
