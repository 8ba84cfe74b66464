"""ADR: ranges that grow as far as the policy can follow, and shrink where it cannot (Akkaya et al. 2019).

    ranges = GrowingRanges.about(twin, belief)
    Environment(twin, task, 128, ranges.box, rng, ranges=ranges)

Some of the worlds have one quantity pinned to an end of its range. How often the task succeeds there goes to that end's buffer;
when it is full, its mean widens the range, narrows it or leaves it, and the buffer is emptied. All worlds are learnt from.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.errors import BadInput
from gapless.learn.presets import box_belief
from gapless.learn.settings import PPOSettings
from gapless.twin import BeliefHistory, Box, Plain, Twin, belief_interval, combined, history, quantities

BOUNDARY = 0.4
"""Share of the worlds that are at a bound (DeXtreme: 0.4)."""
BUFFER = 5
"""Episodes at a bound that decide about it: a training on a processor has a few dozen for each."""
STEP = 0.1
"""By how much a bound moves, as a share of the range that the field draws from, or of a real mismatch where it states none."""
GROW, SHRINK = 0.5, 0.2
"""Shares of success at and above which a range grows, at and below which it shrinks. Episodes are those of a policy that
explores: a pendulum's that holds without noise succeeds in two thirds of the time with it."""
NARROWEST = 0.02
"""Scaled units: half the width of a range whose parameter has no tolerance."""
HOLD = 2.0
"""The last seconds of an episode, in which success counts, as on the course."""
HARDNESS, EASIEST = 0.1, 0.1
"""Step of pushes, ground and commands, and where they begin."""
SIDES = ("below", "above")


class GrowingRanges:
    """A box whose ends move by steps, all parameters of a quantity together: thirty bounds can be tried, not hundreds.

    It owns all of the difficulty: pushes, ground and commands grow and shrink by the success in ordinary worlds.
    """

    def __init__(self, start: Box, step: Array, grow: float = GROW, shrink: float = SHRINK, lasting: int = 1 << 31):
        """Begin.

        Args:
            start: the narrowest that ranges will be.
            step: by how much each parameter's ends move, scaled. Shape: (parameters,).
            grow: success at a bound at which it moves outwards.
            shrink: success at which it moves back.
            lasting: periods after which worlds are made anew, as at every checkpoint of a training.
        """
        if not 0.0 <= shrink < grow <= 1.0:
            raise BadInput(
                f"ranges grow at a success of {grow:g} and shrink at {shrink:g}: both are shares from 0 to 1, the first "
                "larger, or they can never be met"
            )
        self.grow, self.shrink, self.start, self._step, self._lasting = grow, shrink, start, step, lasting
        space = start.space
        self.quantities = tuple(dict.fromkeys(p.quantity for p in space.parameters))
        self._of: Bools = np.array([[p.quantity == q for p in space.parameters] for q in self.quantities])
        self._ends = np.stack([space.to_scaled(start.low), space.to_scaled(start.high)])
        self.out: Ints = np.zeros((2, len(self.quantities)), np.int64)
        """Steps that each quantity's range goes beyond the start, below and above."""
        self.hardness = EASIEST
        self._open = np.argwhere([self._room(side) for side in (0, 1)])  # bounds that can move at all
        self._buffers: dict[str, list[float]] = {}
        self._best = -1.0  # nothing was judged
        self._asked = False
        self.log: list[tuple[int, list[list[int]]]] = [(0, self.out.tolist())]
        """Steps by iteration."""
        self.said: list[str] = []
        self.begin(0, 1.0, 1.0)

    @classmethod
    def about(
        cls, twin: Twin, belief: Plain | None, grow: float = GROW, shrink: float = SHRINK, lasting: int = 1 << 31
    ) -> GrowingRanges:
        """Ranges of all that the field randomises: at first what is no news about the model, or a belief's 90 % intervals."""
        wide = box_belief(twin, quantities.ranges("wide"))
        if belief is not None:
            twin.accepts(belief.space)
        space = wide.space if belief is None else combined(belief, wide).space
        low, high = (space.nominal + sign * space.tolerance for sign in (-1, 1))
        step = np.full(len(space), STEP)
        for i, name in enumerate(space.names):
            if name in wide.space.names:
                at = wide.space.names.index(name)
                step[i] *= float(wide.space.to_scaled(wide.high)[at] - wide.space.to_scaled(wide.low)[at])
        if belief is not None:
            ends = belief_interval(belief)
            known = np.array([name in belief.space.names for name in space.names])
            low[known], high[known] = ends
        middle = (space.to_scaled(space.clip(low)) + space.to_scaled(space.clip(high))) / 2
        narrow = space.to_scaled(space.clip(high)) - space.to_scaled(space.clip(low)) < NARROWEST
        low = np.where(narrow, space.from_scaled(middle - NARROWEST), low)
        high = np.where(narrow, space.from_scaled(middle + NARROWEST), high)
        return cls(Box(space, space.clip(low), space.clip(high)), step, grow, shrink, lasting)

    @property
    def box(self) -> Box:
        """The ranges as they are now."""
        return self._box(self.out)

    def _box(self, out: Ints) -> Box:
        space, steps = self.start.space, out @ self._of * self._step
        low, high = self._ends[0] - steps[0], self._ends[1] + steps[1]
        return Box(space, space.clip(space.from_scaled(low)), space.clip(space.from_scaled(high)))

    def _room(self, side: int) -> list[bool]:
        """Whether a quantity's bound on a side is off the edge of what is possible."""
        limit, sign = self.start.space.bounds[side], 2 * side - 1
        room = sign * (limit - self._ends[side]) > 1e-9
        return [bool(room[of].any()) for of in self._of]

    def begin(self, n: int, seconds: float, dt: float) -> None:
        """Worlds are made anew: so many, the last of them at bounds. seconds, dt: of an episode and of a period [s]."""
        self._length, self._hold = round(seconds / dt), round(HOLD / dt)
        self._periods, self._first = 0, n - round(BOUNDARY * n)
        self._began: Ints = np.zeros(n, np.int64)
        self._pinned: Ints = np.full(n, -1)
        self._counts: Bools = np.zeros(n, bool)
        self._held: Array = np.zeros((n, 2))

    @property
    def at_bounds(self) -> Bools:
        """Which worlds are at bounds. Shape: (n,)."""
        return np.arange(len(self._pinned)) >= self._first

    def draw(self, ids: Ints, rng: np.random.Generator) -> Array:
        """Parameters of worlds that start anew; those at bounds have one quantity pinned. Shape: (len(ids), parameters)."""
        box = self.box
        values = box.sample(len(ids), rng)
        self._held[ids], self._began[ids] = 0.0, self._periods
        # others end anywhere at first, and the last of all are cut off: of such episodes only failures would be seen
        whole = self.at_bounds[ids] | (self._periods > 0)
        self._counts[ids] = whole & (self._periods + self._length <= self._lasting)
        for row, world in enumerate(ids):
            self._pinned[world] = rng.integers(len(self._open)) if world >= self._first and len(self._open) else -1
            if self._pinned[world] >= 0:
                side, quantity = self._open[self._pinned[world]]
                of = self._of[quantity]
                values[row, of] = (box.low, box.high)[side][of]
        return values

    def watch(self, success: Bools, failed: Bools, timeout: Bools) -> None:
        """A period has passed. Shape of each: (n,)."""
        self._periods += 1
        age = self._periods - self._began
        late = age > self._length - self._hold
        self._held[late] += np.column_stack([success & ~failed, np.ones(len(success))])[late]
        for world in np.flatnonzero(self._counts & (failed | (timeout & (age >= self._length)))):
            share = 0.0 if failed[world] else float(self._held[world, 0] / max(self._held[world, 1], 1.0))
            self._count(int(self._pinned[world]), share)

    def _count(self, bound: int, share: float) -> None:
        """An episode has ended at a bound, or in an ordinary world (-1)."""
        side, quantity = self._open[bound] if bound >= 0 else (1, -1)
        name = f"{SIDES[side]} {self.quantities[quantity]}" if bound >= 0 else "hardness"
        buffer = self._buffers.setdefault(name, [])
        buffer.append(share)
        if len(buffer) < (BUFFER if bound >= 0 else 4 * BUFFER):
            return
        mean = float(np.mean(buffer))
        buffer.clear()
        moves = 1 if mean >= self.grow else -1 if mean <= self.shrink else 0
        self._best = max(self._best, mean)
        if bound < 0:
            self.hardness = min(1.0, max(EASIEST, self.hardness + moves * HARDNESS))
        elif moves < 0 or self._can_move(int(side), int(quantity)):
            self.out[side, quantity] = max(0, self.out[side, quantity] + moves)

    def _can_move(self, side: int, quantity: int) -> bool:
        """Whether a bound is not yet at the edge of what is possible."""
        space, box, of = self.start.space, self.box, self._of[quantity]
        end, edge = ((box.low, space.low), (box.high, space.high))[side]
        return bool((np.abs(end - edge)[of] > 1e-12 * np.maximum(1.0, np.abs(edge[of]))).any())

    def keep(self, iteration: int) -> None:
        """Remember the ranges as they are after an iteration."""
        self.log.append((iteration, self.out.tolist()))

    def in_vain(self, share: float) -> str:
        """After a share of the training: once, why thresholds may never be met; empty where one was."""
        if self._asked or self._best < 0:
            return ""
        self._asked = True
        if self._best >= self.grow:
            return ""
        said = (
            f"after {share:.0%} of the training no range has grown: success was {self._best:.0%} at best, and ranges grow at "
            f"{self.grow:.0%}: lower that (--adr-grow), or start from a policy that can do the task on the model (--from)"
        )
        self.said.append(said)
        return said

    def history(self, robot: str) -> BeliefHistory:
        """The ranges by iteration."""
        at, boxes = [i for i, _ in self.log], [self._box(np.array(out)) for _, out in self.log]
        return history(robot, "adr", "iteration", at, boxes, said=self.said)

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs, as plain lists and numbers."""
        return {
            "out": self.out.tolist(),
            "hardness": self.hardness,
            "buffers": {name: list(each) for name, each in self._buffers.items()},
            "best": self._best,
            "asked": self._asked,
            "log": [[i, out] for i, out in self.log],
            "said": list(self.said),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a state; raises ValueError where it is of other ranges."""
        out = np.array(state["out"], np.int64)
        if out.shape != self.out.shape:
            raise ValueError("ranges of other quantities")
        self.out, self.hardness, self._best = out, float(state["hardness"]), float(state["best"])
        self._asked = bool(state["asked"])
        self._buffers = {str(name): [float(x) for x in each] for name, each in state["buffers"].items()}
        self.log = [(int(i), [list(map(int, row)) for row in rows]) for i, rows in state["log"]]
        self.said = [str(each) for each in state["said"]]


def lasting(settings: PPOSettings, seconds: float, dt: float) -> PPOSettings:
    """Settings with checkpoints so far apart that whole episodes fit between them, as worlds are made anew at each.

    seconds, dt: of an episode and of a period [s].
    """
    needed = math.ceil(round(seconds / dt) / settings.steps)
    if needed > settings.iterations:
        raise BadInput(
            f"ranges grow by whole episodes, and one of {seconds:g} s takes {needed} iterations: train for more than "
            f"{settings.iterations} (--iterations)"
        )
    return dataclasses.replace(settings, every=max(settings.every, needed))
