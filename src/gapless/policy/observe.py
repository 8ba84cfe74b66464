"""Observation assembly for n robots at once: the one function that training, check and deployment all call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.arrays import Array
from gapless.checks import Numbers
from gapless.errors import BadInput, unknown
from gapless.policy import act
from gapless.policy.contract import Contract, columns_of
from gapless.policy.gait import Gait
from gapless.policy.parts import CLOCKS, Term
from gapless.rotations import up_of

Frame = NDArray[np.float32]
Readings = Mapping[str, NDArray]
Value = Callable[[Readings, Array, Array, Gait | None], NDArray]
"""A term's columns (n, dim), before clip and scale, from readings, command, last action and gait."""


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
    """Assembles what the network sees, with its history.

        observer = Observer(contract, n)
        observation = observer(readings, command, action)      # float32, shape (n, contract.width)
        observer.reset(done)

    Every call is one control period. Readings follow the order of `contract.joints`, commands that of `contract.commands`,
    actions that of `contract.action.joints`.
    """

    def __init__(self, contract: Contract, n: int):
        if n < 1:
            raise BadInput(f"at least one robot is needed, not {n}")
        terms = contract.observation.terms
        if not terms:
            raise BadInput("the contract does not say what goes into the network: name the terms of its observation")
        self.contract, self.n = contract, n
        self._start = np.ones(n, bool)
        ends = np.cumsum([t.dim for t in terms]).tolist()
        self._values = [(slice(end - t.dim, end), self._value(t)) for t, end in zip(terms, ends, strict=True)]
        self._scale = _by_column(terms, [t.scale for t in terms])
        low, high = zip(*((-np.inf, np.inf) if t.clip is None else t.clip for t in terms), strict=True)
        clips = any(t.clip is not None for t in terms)
        self._clip = (_by_column(terms, low), _by_column(terms, high)) if clips else None
        self._blocks = _blocks(contract)
        self._depth = max(t.history + t.lag for t in terms)
        self._newest_first = contract.observation.order == "newest_first"
        # every frame is written twice, half a ring apart, so that any window of it is one slice
        self._ring = np.zeros((n, 2 * self._depth if self._depth > 1 else 0, ends[-1]), np.float32)
        self._head, self._width = 0, contract.width
        self._shapes = (n, len(contract.commands)), (n, len(contract.action.joints))

    def reset(self, which: ArrayLike | None = None) -> None:
        """Forget the history of some robots (a mask of shape (n,)), or of all."""
        which = np.ones(self.n, bool) if which is None else np.asarray(which)
        if which.dtype != bool or which.shape != (self.n,):
            raise BadInput(f"a mask of robots must be bool of shape ({self.n},), not {which.dtype} of {which.shape}")
        self._start |= which

    def __call__(
        self, readings: Readings, command: ArrayLike, action: ArrayLike, gait: Gait | None = None, keep: bool = True
    ) -> Frame:
        """The observation of this period. Shape: (n, width).

        Args:
            readings: by signal, of shape (n, columns): "q" and "dq" in the order of the contract's joints, "quat" (w first),
                "gyro", and the kinds of other terms.
            command: shape (n, commands).
            action: the network's last output, zeros after a reset; shape (n, driven joints).
            gait: of these robots. Only clock terms need it.
            keep: whether this frame enters the history; without, the call leaves no trace.
        """
        command, action = np.asarray(command), np.asarray(action)
        if (command.shape, action.shape) != self._shapes:
            given = f"command and last action have shapes {command.shape} and {action.shape}"
            raise BadInput(f"{given}, not {self._shapes[0]} and {self._shapes[1]}")
        frame = np.empty((self.n, len(self._scale)), np.float32)
        for columns, value in self._values:
            frame[:, columns] = value(readings, command, action, gait)
        if self._clip is not None:
            low, high = self._clip  # np.clip takes twice as long
            np.minimum(np.maximum(frame, low, out=frame), high, out=frame)
        frame *= self._scale
        return self._with_history(frame, keep) if self._depth > 1 else frame

    def _with_history(self, frame: Frame, keep: bool) -> Frame:
        """The observation that ends with this frame."""
        depth, ring = self._depth, self._ring
        # the slot that is written is the oldest one, which no later observation shows: not moving on leaves no trace
        head = (self._head + (-1 if self._newest_first else 1)) % depth
        if self._start.any():
            repeat = self.contract.observation.warmup == "repeat"
            ring[self._start] = frame[self._start, None] if repeat else 0.0
        ring[:, head] = ring[:, head + depth] = frame
        if keep:
            self._head = head
            self._start[:] = False
        observation = np.empty((self.n, self._width), np.float32)
        for block in self._blocks:
            first = head + block.lag if self._newest_first else head + depth + 1 - block.lag - block.history
            into = observation[:, block.into].reshape(self.n, block.history, -1)
            into[:] = ring[:, first : first + block.history, block.columns]
        return observation

    def _value(self, term: Term) -> Value:
        """How a term's columns are found."""
        contract, n = self.contract, self.n
        if term.kind in CLOCKS:
            if contract.timing.control_dt is None:
                raise BadInput(f"term {term.name!r}: a clock needs the contract's control_dt")
            return lambda readings, command, action, gait: _clock(gait, term, command)
        if term.kind == "command":
            chosen = columns_of(term.commands, tuple(contract.commands))
            return lambda readings, command, action, gait: command[:, chosen]
        if term.kind == "last_action":
            chosen = columns_of(term.joints, contract.action.joints)
            forms = {"raw": lambda contract, action: action, "clipped": act.clipped, "processed": act.processed}
            form = forms[contract.observation.last_action]
            return lambda readings, command, action, gait: form(contract, action)[:, chosen]
        if term.kind == "gravity":
            down = contract.conventions.gravity[2]
            return lambda readings, command, action, gait: down * up_of(_read(readings, "quat", term, (n, 4)))
        if term.kind == "context" and contract.context is not None and contract.context.value is not None:
            z = np.tile(contract.context.value, (n, 1))
            return lambda readings, command, action, gait: z
        chosen, shape = slice(None), (n, term.dim)
        if term.kind == "quat" and contract.conventions.quaternion == "xyzw":
            chosen = np.array([1, 2, 3, 0])
        elif term.kind in ("q", "dq") or term.joints:
            chosen, shape = columns_of(term.joints, contract.joints.names), (n, len(contract.joints.names))
        if term.kind != "q" or term.absolute:
            return lambda readings, command, action, gait: _read(readings, term.kind, term, shape)[:, chosen]
        if contract.joints.default_pos is None:
            raise BadInput(f"term {term.name!r}: the contract does not say the default position that q is taken from")
        default = np.array(contract.joints.default_pos)[chosen]
        return lambda readings, command, action, gait: _read(readings, "q", term, shape)[:, chosen] - default


def _by_column(terms: Sequence[Term], numbers: Sequence[Numbers]) -> Frame:
    """Numbers of each term, one for all its columns or one a column, by column of a frame."""
    return np.concatenate([np.broadcast_to(np.asarray(x, np.float32), t.dim) for t, x in zip(terms, numbers, strict=True)])


def _blocks(contract: Contract) -> tuple[_Block, ...]:
    """Each term alone, or, frame by frame, neighbours that show the same frames."""
    terms, by_frame = contract.observation.terms, contract.observation.major == "frame"
    blocks, column, into = [], 0, 0
    for (history, lag, _), group in groupby(terms, lambda t: (t.history, t.lag, "" if by_frame else t.name)):
        dim = sum(t.dim for t in group)
        blocks.append(_Block(slice(column, column + dim), history, lag, slice(into, into + dim * history)))
        column, into = column + dim, into + dim * history
    return tuple(blocks)


def _clock(gait: Gait | None, term: Term, command: Array) -> Array:
    if gait is None:
        raise BadInput(f"term {term.name!r}: a clock is shown by the robots' Gait, which is missing")
    return gait.clock(term, command)


def _read(readings: Readings, kind: str, term: Term, shape: tuple[int, int]) -> NDArray:
    if kind not in readings:
        raise BadInput(f"term {term.name!r}: {unknown('reading', kind, readings)}")
    value = readings[kind]
    if value.shape != shape:
        raise BadInput(f"term {term.name!r}: reading {kind!r} has shape {value.shape}, not {shape}")
    return value
