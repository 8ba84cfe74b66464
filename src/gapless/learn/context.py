"""The truth about worlds as a policy's context: parameters from -1 to 1 over the range that training draws them from."""

import dataclasses

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.policy import Context, Contract, Term
from gapless.twin import Belief, Twin
from gapless.worlds import Worlds

DRAWS = 1000
"""Of a belief, whose least and largest are the ends of its range."""
STILL = 1e-6
"""Share of a typical mismatch; what varies less is the same in all worlds."""
BEYOND = 3.0
"""Worlds outside the range are shown up to here."""
MOST = 256


def context_of(belief: Belief | None, provider: str = "truth") -> Context:
    """The context that tells worlds of a belief apart."""
    if belief is not None:
        space = belief.space
        drawn = space.to_scaled(belief.sample(DRAWS, np.random.default_rng(0)))
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        vary = np.flatnonzero(high - low > STILL)
        if len(vary):
            names = tuple((space.parameters[i].members or (space.names[i],))[0] for i in vary)[:MOST]
            low, high = (space.from_scaled(end)[vary][:MOST] for end in (low, high))
            return Context(names, provider, tuple(low.tolist()), tuple(high.tolist()))
    raise BadInput("a teacher is told what its worlds differ in, and these do not differ: use --preset wide or a --belief")


def with_context(contract: Contract, context: Context) -> Contract:
    """A policy's contract with a context as its last term."""
    told = "privileged" if context.value is None else "estimated"
    term = Term("context", "context", len(context.names), provenance=told)
    terms = (*(t for t in contract.observation.terms if t.kind != "context"), term)
    return dataclasses.replace(contract, context=context, observation=dataclasses.replace(contract.observation, terms=terms))


class Truth:
    """What worlds really are, in the words of a context."""

    def __init__(self, context: Context, twin: Twin):
        missing = [name for name in context.names if name not in twin.space.names]
        if missing or context.low is None or context.high is None:
            lacks = f"{twin.name} has no {', '.join(missing[:3])}" if missing else "it is a learned vector"
            raise BadInput(f"the policy's context is of another robot: {lacks}")
        self._twin, self._columns = twin, [twin.space.names.index(name) for name in context.names]
        ends = np.tile(twin.space.nominal, (2, 1))
        ends[:, self._columns] = context.low, context.high
        low, high = twin.space.to_scaled(ends)[:, self._columns]
        self._centre, self._half = (low + high) / 2, np.maximum(high - low, STILL) / 2

    def __call__(self, worlds: Worlds) -> Array:
        """The context of each world as it is now. Shape: (n, context)."""
        scaled = self._twin.space.to_scaled(self._twin.expand(worlds.values, worlds.belief.space))[:, self._columns]
        return np.clip((scaled - self._centre) / self._half, -BEYOND, BEYOND)
