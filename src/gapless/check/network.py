"""Observation to action: the network gives what training gave, is finite, remembers, and depends on what it is shown."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.check.alternatives import joint_orders, other_side
from gapless.check.finding import FAIL, NETWORK, PASS, SKIP, WARN, Check
from gapless.policy import Action, Contract, Joints, Network, Observation, Policy, Term
from gapless.robots import RobotModel

PARITY = 1e-4
"""Largest difference to a golden action, relative where the action is above 1; float32 in another runtime stays below 1e-5."""
ROUNDED = 5e-3
"""What weights of 16 bits make of it: 1e-3 to 3e-3 on the networks that were tried."""
DIAGONAL = 2.5
"""How much stronger an action answers to its own joint than to others, for a block of columns to be taken for joints."""
NUDGE = 0.02
"""Of an input, for the Jacobian by differences."""


def run(network: Network, observation: Any, recurrent: bool = False, reset: bool = False) -> Array:
    """Actions of frames (frames, width), one robot in a row; memory is kept from frame to frame unless `reset`."""
    forget = getattr(network, "reset", lambda: None)
    forget()
    rows = []
    for row in observation if recurrent else ():
        if reset:
            forget()
        rows.append(np.asarray(network(row[None]))[0])
    out = np.array(rows) if recurrent else np.asarray(network(observation))
    forget()
    return out


def golden_parity(network: Network, contract: Contract, golden: tuple[Array, Array] | None) -> Iterator[Check]:
    """Golden frames come out; where they do not, what was done to them is named."""
    if golden is None:
        yield Check("golden frames", NETWORK, SKIP, "There are no golden frames of training, so the network is taken as it is.")
        return
    observation, action = golden
    fit = observation.ndim == action.ndim == 2 and len(observation) == len(action) > 0
    if not fit or observation.shape[1] != contract.width or action.shape[1] != len(contract.action.joints):
        sentence = (
            f"The golden frames have shapes {observation.shape} and {action.shape}, and the contract {contract.width} numbers."
        )
        yield Check("golden frames", NETWORK, FAIL, sentence, fix="Record golden frames with this contract.")
        return
    if not np.isfinite(observation).all() or not np.isfinite(action).all() or not observation.any():
        yield Check("golden frames", NETWORK, FAIL, "The golden frames are zero or not finite, so they prove nothing.")
        return
    recurrent = contract.recurrent is not None
    worst = difference(run(network, observation, recurrent), action)
    if worst <= PARITY:
        sentence = f"The network gives the golden actions of {len(observation)} frames."
        yield Check("golden frames", NETWORK, PASS, sentence, worst, PARITY)
        return
    if worst <= ROUNDED:
        sentence = f"Golden actions differ by up to {worst:.2g}, as from weights of 16 bits or a normaliser's other epsilon."
        fix = "Export in 32 bits with the training's own normaliser, or accept the difference."
        yield Check("precision", NETWORK, WARN, sentence, worst, PARITY, fix=fix)
        return
    name, sentence = _explain(network, contract, observation, action)
    fix = "Export the network again with all that training ran, and compare it with the training's own actions."
    yield Check(name, NETWORK, FAIL, f"Golden actions differ by up to {worst:.3g}. {sentence}", worst, PARITY, fix=fix)


def difference(given: Array, action: Array) -> float:
    """Largest difference of actions, relative where they are above 1."""
    off = np.abs(given - action) / np.maximum(1.0, np.abs(action))
    return float(np.max(np.where(np.isfinite(off), off, np.inf)))


def _explain(network: Network, contract: Contract, observation: Array, action: Array) -> tuple[str, str]:
    """What would make golden actions come out."""
    recurrent = contract.recurrent is not None
    given = run(network, observation, recurrent)
    if recurrent and difference(run(network, observation, True, reset=True), action) <= PARITY:
        return "recurrent state", "They come out if the memory is zeroed every period: training ran without it."
    if difference(given[:1], action[:1]) <= PARITY and len(action) > 4:
        return "recurrent state", "The first comes out and later ones do not: the network's memory is lost on the way."
    if given.shape[1] == action.shape[1] and len(action) >= 8:
        index = match_columns(given, action)
        if index is not None and (index != np.arange(len(index))).any():
            moved = [contract.action.joints[i] for i in np.flatnonzero(index != np.arange(len(index)))]
            return "joint order", f"They come out with actions in another order: {', '.join(moved[:6])} are exchanged."
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.sum(given * action, axis=0) / np.sum(given * given, axis=0)
        if np.isfinite(ratio).all() and difference(given * ratio, action) <= 10 * PARITY:
            negated = [j for j, r in zip(contract.action.joints, ratio, strict=True) if r < 0]
            if negated:
                return "sign", f"They come out if {', '.join(negated[:6])} are negated."
            return "action scale", f"They come out if actions are multiplied by {np.median(ratio):.3g}."
    for name, other in layouts(contract, observation):
        if difference(run(network, other, recurrent), action) <= PARITY:
            return name[0], f"They come out if {name[1]}."
    mean, spread = observation.mean(axis=0), observation.std(axis=0) + 1e-2
    scaled = difference(run(network, ((observation - mean) / spread).astype(np.float32), recurrent), action)
    nothing = "No change of order, sign, scale or history makes them come out"
    if scaled < 0.5 * difference(given, action):
        return "normaliser", "They come nearer if inputs are scaled by what training saw: the normaliser is missing."
    if contract.normalizer == "baked":
        return "normaliser", f"{nothing}: the normaliser inside is another one or applied twice, or it is another network."
    return "golden frames", f"{nothing}: it is another network."


def match_columns(given: Array, wanted: Array) -> Array | None:
    """For each wanted column the given one that equals it; None unless all have one."""
    far = np.abs(given[:, :, None] - wanted[:, None]).max(axis=0)
    index = far.argmin(axis=0)
    close = far[index, np.arange(wanted.shape[1])] <= PARITY * np.maximum(1.0, np.abs(wanted).max(axis=0))
    return index if close.all() and len(set(index.tolist())) == len(index) else None


def layouts(contract: Contract, observation: Array) -> Iterator[tuple[tuple[str, str], Array]]:
    """Observations with their history turned round, or in the other layout."""
    terms = contract.observation.terms
    if all(t.history == 1 for t in terms):
        return
    if contract.observation.major == "term":
        starts = np.cumsum([0, *(t.width for t in terms)])
        blocks = [
            observation[:, a:b].reshape(len(observation), t.history, -1)
            for a, b, t in zip(starts, starts[1:], terms, strict=False)
        ]
        yield ("history order", "the history is turned round"), np.hstack([b[:, ::-1].reshape(len(b), -1) for b in blocks])
        if len({t.history for t in terms}) == 1:
            yield (
                ("history layout", "the history goes frame by frame"),
                np.concatenate(blocks, axis=2).reshape(len(observation), -1),
            )
    elif len({t.history for t in terms}) == 1:
        frames = observation.reshape(len(observation), terms[0].history, -1)
        yield ("history order", "the history is turned round"), frames[:, ::-1].reshape(len(observation), -1)
        ends = np.cumsum([0, *(t.dim for t in terms)])
        by_term = [frames[:, :, a:b].reshape(len(observation), -1) for a, b in pairwise(ends)]
        yield ("history layout", "the history goes term by term"), np.hstack(by_term)


def sanity(network: Network, contract: Contract, begins_scaled: bool | None, memoryless: bool) -> Iterator[Check]:
    """Finite, alive, with memory and normaliser as the contract says."""
    rng = np.random.default_rng(0)
    frames = rng.normal(0.0, 0.3, (16, contract.width)).astype(np.float32)
    out = run(network, frames, contract.recurrent is not None)
    if not np.isfinite(out).all() or out.shape != (16, len(contract.action.joints)):
        yield Check("network", NETWORK, FAIL, "The network gives numbers that are not finite.", fix="Export it again.")
        return
    if np.ptp(out, axis=0).max() < 1e-6:
        yield Check("network", NETWORK, FAIL, "The network gives the same action whatever it sees.", fix="Export it again.")
        return
    yield Check("network", NETWORK, PASS, "The network runs and depends on what it sees.", float(np.abs(out).max()))
    if memoryless:
        sentence = "The network takes and gives a memory, and the contract knows of none: it would be zeroed every period."
        yield Check("recurrent state", NETWORK, FAIL, sentence, fix="Name its inputs and outputs under recurrent.")
    elif contract.recurrent is not None:
        # frames that differ: a context that is held shows only then
        moved = difference(run(network, frames[:8], True)[1:], run(network, frames[:8], True, reset=True)[1:])
        renewed = contract.context is not None and (contract.context.rate or 0) * (contract.timing.control_dt or 0) > 0.99
        status = PASS if moved > 1e-6 or renewed else FAIL
        sentence = f"Its memory changes the action by up to {moved:.3g}."
        fix = "" if status == PASS else "Feed the state that comes out back in; the exporter may have frozen it at zero."
        yield Check("recurrent state", NETWORK, status, sentence, moved, 1e-6, fix=fix)
    if contract.normalizer == "baked" and begins_scaled is False:
        sentence = (
            "The contract says that the normaliser is inside the network, and its first layer meets the inputs as they are."
        )
        yield Check("normaliser", NETWORK, FAIL, sentence, fix="Export actor and normaliser together.")


def jacobian(network: Network, contract: Contract, around: Array) -> Array:
    """Mean size of the change of each action by each input, near some observations. Shapes: (k, width) to (actions, width)."""
    total = np.zeros((len(contract.action.joints), contract.width))
    forget = getattr(network, "reset", lambda: None)
    for row in around:
        nudged = np.tile(row, (contract.width + 1, 1)).astype(np.float32)
        nudged[1:][np.diag_indices(contract.width)] += NUDGE
        forget()
        out = np.asarray(network(nudged), float)
        total += np.abs((out[1:] - out[0]).T) / NUDGE / len(around)
    forget()
    return total


def dead_terms(sizes: Array, columns: dict[str, list[int]]) -> Iterator[Check]:
    """Terms that no action depends on."""
    strongest = {name: float(sizes[:, c].max()) for name, c in columns.items()}
    dead = [name for name, size in strongest.items() if size < 1e-4 * max(strongest.values())]
    if dead:
        sentence = f"No action depends on {', '.join(dead)}."
        yield Check("dead input", NETWORK, WARN, sentence, 0.0, fix="Compare the observation's layout with training.")


def asymmetry(block: Array, names: tuple[str, ...]) -> float:
    """How far the sizes (joints, joints) of a network's answers are from mirror symmetry; NaN for names without sides."""
    partner = [names.index(o) if (o := other_side(n)) in names else -1 for n in names]
    if -1 in partner or partner == list(range(len(names))):
        return float("nan")
    return float(np.abs(block - block[np.ix_(partner, partner)]).sum() / max(block.sum(), 1e-12))


def order_from_network(sizes: Array, columns: list[int], contract: Contract, robot: RobotModel) -> Iterator[Check]:
    """Whether the network treats left and right alike under the contract's joint names, and under which names it would."""
    names = contract.action.joints
    if len(columns) != len(names):
        return
    block = sizes[:, columns]
    stated = asymmetry(block, names)
    if not np.isfinite(stated):
        return
    orders = {what: asymmetry(block, order) for what, order in joint_orders(names, robot).items() if "exchanged" not in what}
    best = min(orders, key=lambda w: orders[w], default=None)
    if best is not None and orders[best] < 0.6 * stated:
        sentence = (
            f"The network treats left and right alike in {best} (asymmetry {orders[best]:.2f}), not in the contract's order "
            f"({stated:.2f})."
        )
        fix = "Name the joints in the order in which the network was trained."
        yield Check("joint order", NETWORK, WARN, sentence, stated, 0.6 * stated, fix=fix)
    else:
        sentence = f"Left and right joints are treated alike to {stated:.2f} of the answers' size."
        yield Check("symmetry", NETWORK, PASS, sentence, stated)


def look_into(model: bytes, width: int, outputs: int) -> Iterator[Check]:
    """Where a network without a contract seems to take one number a joint: each action answers most to its own column there."""
    names = tuple(f"joint {i}" for i in range(outputs))
    try:
        contract = Contract(Joints(names), Action("position", names), Observation((Term("all", "all", width),)))
        sizes = jacobian(Policy(contract, model), contract, np.random.default_rng(0).normal(0.0, 0.1, (4, width)))
    except ValueError:
        return
    strength = []
    for start in range(width - outputs + 1):
        block = sizes[:, start : start + outputs]
        strength.append(float(np.diag(block).mean() / max(float(np.mean(block)), 1e-12)))
    starts: list[int] = []
    for start in np.argsort(strength)[::-1]:
        if strength[start] > DIAGONAL and all(abs(start - s) >= outputs for s in starts):
            starts.append(int(start))
    if starts:
        words = ", ".join(f"{s} to {s + outputs - 1}" for s in sorted(starts))
        sentence = f"Joint by joint, actions answer most to the columns {words}: positions, speeds or last actions stand there."
        yield Check(
            "layout", NETWORK, WARN, sentence, strength[starts[0]], DIAGONAL, fix="State observation.terms accordingly."
        )
