"""Training of a network per joint: errors of joints alone along the twin's own loads, followed down by their exact gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.residual.adjoint import simulate
from gapless.residual.own_run import Felt, Run
from gapless.twin import Net, Twin, learned

HIDDEN = 16  # units: 24 learn these logs no better and cost half as much again
PIECE, BURN_IN = 4.0, 0.5  # s: joints run free this long, and are compared from the second on
STEPS = 60_000  # of all joints together that a step of Adam looks at
ROUNDS = 300  # of Adam
RATE = 0.01  # of Adam, falling to 0
PENALTY = 0.02  # on the squared torque in units of its bound, against errors in units of the usual one
DECAY = 0.03  # of weights that shift targets, against the loss of a sample: a policy's few poses are learned by heart without
SHARE = 0.5  # of the drive's root mean square torque that a network gives at most
TARGET_SHARE = 1.5  # the same where it shifts targets on top of a model that may be far off
RARE = 0.002  # share of the steps whose inputs are outside of the support


@dataclass(frozen=True)
class Material:
    """What joints felt in all logs, cut into pieces."""

    felt: Array
    """As `Felt`, piece after piece. Shape: (12, steps)."""
    pieces: Ints
    """First and last step, the step from which it is compared, and its joint. Shape: (pieces, 4)."""
    block: Ints
    """Number of the block of each step. Shape: (steps,)."""
    joints: Array
    """Grip, damping, limits, and the usual error; see `simulate`. Shape: (joints, 12)."""
    timestep: float
    gain: Array
    """What the output of each joint's network is multiplied by: 1, or where it shifts a target the drive's gain. Shape:
    (joints,)."""
    target: bool = False
    """Whether networks shift what drives are told."""

    def within(self, blocks: Bools) -> Material:
        """The same, compared in some blocks only; pieces without any such sample are left out."""
        felt = self.felt.copy()
        felt[10, ~blocks[self.block]] = np.nan
        seen = np.concatenate([[0], np.cumsum(np.isfinite(felt[10]))])
        pieces = self.pieces[seen[self.pieces[:, 1]] - seen[self.pieces[:, 2]] > 0]
        rows = np.concatenate([np.arange(first, last) for first, last, _, _ in pieces])
        length = pieces[:, 1] - pieces[:, 0]
        moved = pieces.copy()
        moved[:, :3] += (np.cumsum(length) - length - pieces[:, 0])[:, None]
        return replace(self, felt=np.ascontiguousarray(felt[:, rows]), pieces=moved, block=self.block[rows])


def material(
    runs: Sequence[Run], blocks: Sequence[Sequence[Ints]], timestep: float, in_windows: bool, target: bool = False
) -> Material:
    """Runs of logs as pieces. blocks: of each step, by run and window; target: whether networks shift what drives are told."""
    parts: list[Array] = []
    numbers: list[Ints] = []
    pieces: list[tuple[int, int, int, int]] = []
    start = 0
    long, burn = round(PIECE / timestep), round(BURN_IN / timestep)
    for run, every in zip(runs, blocks, strict=True):
        for joints, block in zip(run.felt, every, strict=True):
            n = len(block)
            cuts = [(0, n, 0)] if in_windows else [(max(0, a - burn), min(a + long, n), a) for a in range(0, n, long)]
            for j, felt in enumerate(joints):
                for first, last, begin in cuts:
                    skipped = burn if not in_windows and first == 0 else 0
                    pieces.append((start, start + last - first, start + max(begin - first, skipped), j))
                    parts.append(np.stack([column[first:last] for column in felt]))
                    numbers.append(block[first:last])
                    start += last - first
    whole, table = np.concatenate(parts, axis=1), np.array(pieces, dtype=np.int64)
    one = runs[0]
    fixed = np.column_stack([one.grip, one.damping, one.limit, np.ones(len(one.damping))])
    gain = one.gain if target else np.ones(len(one.gain))
    return Material(whole, table, np.concatenate(numbers), fixed, timestep, gain, target)


def sized(given: Material) -> Material:
    """The same with the usual error of each joint, from the run itself."""
    error = given.felt[0] + given.felt[11] * np.r_[np.diff(given.felt[0]), 0.0] - given.felt[10]
    owner = owners(given)
    joints = given.joints.copy()
    for j in range(len(joints)):
        mine = np.abs(error[(owner == j) & np.isfinite(error)])
        joints[j, 11] = 1.5 * float(np.median(mine)) + 1e-6 if len(mine) else 1.0
    return replace(given, joints=joints)


def owners(given: Material) -> Ints:
    """The joint of each step. Shape: (steps,)."""
    out = np.zeros(given.felt.shape[1], dtype=np.int64)
    for first, last, _, j in given.pieces:
        out[first:last] = j
    return out


def inputs_of(given: Material, waves: Array) -> Array:
    """What the networks would see along the runs. waves: by joint. Shape: (inputs, steps)."""
    f = Felt(*given.felt)
    push, late = f.base + f.stiffness * f.x, np.empty((3, len(f.x)))
    _remembered(given.pieces, push, f.v, given.timestep, late)
    angle = waves[owners(given)] * f.x
    direction = f.v / (np.abs(f.v) + learned.CREEP)
    return np.stack([push, f.v, direction, f.command_velocity, f.bias, f.x, *late, np.sin(angle), np.cos(angle)])


@numba.njit
def _remembered(pieces, push, v, dt, out):  # type: ignore[no-untyped-def]
    memory = np.zeros(learned.MEMORY)
    for p in range(len(pieces)):
        for k in range(pieces[p, 0], pieces[p, 1]):
            learned.remember(memory, 0, k == pieces[p, 0], push[k], v[k], 0.0, dt)
            out[0, k], out[1, k], out[2, k] = memory[0], memory[1], memory[2]


def blank(twin: Twin, given: Material, waves: Array, rng: np.random.Generator) -> list[Net]:
    """A network for each joint that gives no torque yet, scaled to what it will see."""
    seen, owner, f = inputs_of(given, waves), owners(given), Felt(*given.felt)
    out = []
    for j, d in enumerate(twin.drives):
        mine = seen[:, owner == j]
        torque = np.clip(mine[0] + f.damping[owner == j] * f.v[owner == j], given.joints[j, 9], given.joints[j, 10])
        centre, spread = mine.mean(axis=1), mine.std(axis=1)
        spread = np.where(spread > 1e-6 * (1 + np.abs(centre)), spread, 1.0)
        low, high = (np.quantile(mine, [RARE / 2, 1 - RARE / 2], axis=1) - centre) / spread
        weights = np.zeros(learned.weights(HIDDEN))
        within = (learned.COUNT + 1) * HIDDEN
        weights[:within] = rng.normal(0.0, 1 / math.sqrt(learned.COUNT), within)
        bound = (TARGET_SHARE if given.target else SHARE) * float(np.sqrt((torque**2).mean())) / given.gain[j]
        sides = tuple(centre.tolist()), tuple(spread.tolist()), tuple(low.tolist()), tuple(high.tolist())
        out.append(Net(d.name, d.signal, given.timestep, bound, float(waves[j]), *sides, (tuple(weights.tolist()),)))
    return out


def numbers_of(nets: Sequence[Net], member: int = 0) -> Array:
    """All networks as the simulation takes them. Shape: (joints, numbers)."""
    return np.stack([net.numbers[member] for net in nets])


def trained(
    given: Material,
    numbers: Array,
    rng: np.random.Generator,
    rounds: int = ROUNDS,
    tick: Callable[[int, float], object] = lambda k, e: None,
) -> Array:
    """Networks after training by Adam (Kingma and Ba 2015) from where they are. Shape: (joints, numbers)."""
    numbers = numbers.copy()
    shape = (len(numbers), numbers.shape[1] - learned.HEAD)
    mean, square = np.zeros(shape), np.zeros(shape)
    length = given.pieces[:, 1] - given.pieces[:, 0]
    take = max(1, min(len(length), int(STEPS / length.mean())))
    order: list[int] = []
    x, tau = np.empty(given.felt.shape[1]), np.empty(given.felt.shape[1])
    for k in range(rounds):
        if len(order) < take:
            order = [*order, *rng.permutation(len(length)).tolist()]
        chosen, order = given.pieces[order[:take]], order[take:]
        loss, slope, count = step_of(given, chosen, numbers, x, tau)
        bottom = np.maximum(count, 1)[:, None]
        gradient = slope / bottom
        if given.target:
            gradient[:, :-1] += DECAY * numbers[:, learned.HEAD : -1]  # all but the constant
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        ahead = (mean / (1 - 0.9 ** (k + 1))) / (np.sqrt(square / (1 - 0.99 ** (k + 1))) + 1e-9)
        numbers[:, learned.HEAD :] -= RATE * 0.5 * (1 + math.cos(math.pi * k / rounds)) * ahead
        tick(k, float(loss.sum() / max(count.sum(), 1)))
    return numbers


def step_of(given: Material, pieces: Ints, numbers: Array, x: Array, tau: Array) -> tuple[Array, Array, Array]:
    """Loss, slopes by the weights and number of samples of each joint, over some pieces."""
    loss, slopes = np.zeros(len(pieces)), np.zeros((len(pieces), numbers.shape[1] - learned.HEAD))
    seen = np.array([np.isfinite(given.felt[10, begin:last]).sum() for _, last, begin, _ in pieces])
    driven, steps = in_torque(given, numbers), float((pieces[:, 1] - pieces[:, 0]).sum())
    penalty = PENALTY * float(seen.sum()) / steps
    simulate(given.felt, pieces, driven, given.joints, given.timestep, penalty, True, given.target, loss, slopes, x, tau)
    joints = len(numbers)
    total, slope, count = np.zeros(joints), np.zeros((joints, slopes.shape[1])), np.zeros(joints)
    np.add.at(total, pieces[:, 3], loss)
    np.add.at(slope, pieces[:, 3], slopes)
    np.add.at(count, pieces[:, 3], seen)
    return total, slope, count


def torques(given: Material, numbers: Array) -> Array:
    """What networks give along their own simulation of the pieces [N m]. Shape: (steps,)."""
    n, pieces = given.felt.shape[1], given.pieces
    x, tau, loss, slope = np.zeros(n), np.zeros(n), np.zeros(len(pieces)), np.zeros((len(pieces), 0))
    driven = in_torque(given, numbers)
    simulate(given.felt, pieces, driven, given.joints, given.timestep, 0.0, False, given.target, loss, slope, x, tau)
    return tau


def in_torque(given: Material, numbers: Array) -> Array:
    """Networks that give torque [N m], where they shift targets. Shape: (joints, numbers)."""
    return np.hstack([numbers[:, :1], numbers[:, 1:2] * given.gain[:, None], numbers[:, 2:]])


def rounded(member: Array) -> tuple[float, ...]:
    """Weights with seven digits: no more are known, and files stay small."""
    return tuple(float(f"{w:.7g}") for w in member)
