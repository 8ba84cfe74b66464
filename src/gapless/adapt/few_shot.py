"""Few-shot: the training of a planner with an inverse-dynamics head, and the tuning of the head in two minutes on a robot."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gapless import files as disk
from gapless.adapt.headed import Plain
from gapless.adapt.inverse import BATCH, Data, Planned, fit_head, places_of, recorded
from gapless.adapt.lots import Lots, keep
from gapless.adapt.on_one import OnOne
from gapless.adapt.on_robot import Given
from gapless.adapt.result import Adapted
from gapless.adapt.search import MOST, Trial
from gapless.adapt.trials import Watch
from gapless.errors import BadInput
from gapless.learn import Frame, load_run
from gapless.policy import load_policy

FILE = "inverse.npz"
NOISE = 0.3
"""Least standard deviation of the noise on actions while robots are recorded."""
UPDATES = 1500
"""Gradient steps of training."""
ROBOTS, EACH = 64, 1
"""Of each recording in training, and episodes on each."""
TUNING, RATE = 400, 3e-4
"""Gradient steps on the robot's data, and their learning rate."""
HELD_OUT = 4
"""One episode of this many says when to stop."""
LEAST = 4
"""Episodes on the robot."""
LARGEST = 64 << 20  # bytes


def train_inverse(plain: Plain, folder: Path, steps: int, seed: int, threads: int, tell: Callable[[int, float], None]) -> None:
    """Split a trained policy into a planner and a head, from at most so many simulated steps, and leave both in a folder.

    The planner learns where the policy brings robots; both together learn to act as the policy does.
    """
    torch.set_num_threads(1)
    torch.manual_seed(int(np.random.SeedSequence([seed, 0x1D]).generate_state(1)[0]))
    base, rng = plain.headed().eval(), np.random.default_rng([seed, 0x1D])
    lots, places = Lots(plain, ROBOTS, EACH, rng, threads), places_of(plain.contract.observation)
    if not places:
        raise BadInput(f"{plain.folder}: its policy sees neither joints nor an IMU, so a planner could not say where to be")
    rounds, spread = max(1, steps // lots.steps), base.spread.clamp(min=NOISE)
    rows: list[Data] = []
    for _ in range(rounds):
        rows.append(recorded(lots.play, base, spread, places)[0])
        lots.draw()
    data = tuple(torch.cat(part) for part in zip(*rows, strict=True))
    with torch.no_grad():
        right = base(data[0])
    network = Planned(data[0].mean(dim=0), data[0].std(dim=0) + 1e-2, places, spread)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    for k in range(UPDATES):
        for group in optimiser.param_groups:
            group["lr"] = 1e-3 * 0.1 ** (k / UPDATES)
        chosen = torch.randint(len(right), (BATCH,))
        seen, later, action = (part[chosen] for part in data)
        plan, moved = network.plan(seen), network.moved(seen, later)
        inverse = (network.act(seen, moved) - action).square().mean()
        whole = (network.act(seen, plan) - right[chosen]).square().mean()
        loss = (plan - moved).square().mean() + inverse + whole
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (k + 1) % (UPDATES // 10) == 0:
            tell(k + 1, float(inverse.detach().sqrt()))
    keep(plain.into(folder), network, threads)
    save_planned(network, folder)


def tune_head(
    policy: str | os.PathLike[str],
    robot: Given,
    folder: str | os.PathLike[str],
    budget: int = 20,
    seed: int = 0,
    threads: int = 0,
    tell: Callable[[list[Trial]], None] = lambda trials: None,
) -> Adapted:
    """Tune the inverse-dynamics head on what one robot does in some episodes, without reward.

    Args:
        policy: folder of a training with --adapt inverse.
        robot: a stand-in, its file, or the name or path of a model, which is then the robot.
        folder: of the adapted policy and the result.
        budget: episodes on the robot.
        seed: of noise and starts.
        threads: of physics, 0 for one per core.
        tell: told all trials.
    """
    if not LEAST <= budget <= MOST:
        raise BadInput(f"a head needs a budget of {LEAST} to {MOST} episodes on the robot, not {budget}")
    path = Path(policy)
    network, before = load_planned(path), load_policy(path)
    one, trials = OnOne(load_run(path), before.contract, robot, seed, threads), list[Trial]()
    torch.manual_seed(seed)

    def play(act: Callable[[Frame], Frame], watch: Watch) -> None:
        trials.extend(one.trials(budget, act, watch))
        tell(trials)

    data, world = recorded(play, network, network.spread, network.places)
    held = world % HELD_OUT == 0
    if not held.any() or held.all():
        stopped = "what the robot did was too short to learn from"
    else:
        stopped = ""
        told, kept = (tuple(part[which] for part in data) for which in (~held, held))
        fit_head(network, told, TUNING, RATE, kept)  # type: ignore[arg-type]
    result = one.adapted("inverse", before, network, trials, Path(folder), policy, stopped)
    save_planned(network, Path(folder))
    return result


def save_planned(network: Planned, folder: Path) -> None:
    """Write planner and head beside their policy."""
    arrays = {name: value.numpy() for name, value in network.state_dict().items()}
    with disk.atomic(folder / FILE) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, places=np.array(network.places), **arrays)


def load_planned(folder: Path) -> Planned:
    """Planner and head of a policy; the file may come from anywhere."""
    path = folder / FILE
    if not path.is_file():
        raise BadInput(f"{folder}: its policy has no inverse-dynamics head: train one with gapless train --adapt inverse")
    disk.check_zip(path).close()
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path}: larger than {LARGEST >> 20} MB, which no such networks are")
    with disk.refusing(f"{path}: not a planner and head", Exception), np.load(path, allow_pickle=False) as found:
        arrays = {name: torch.from_numpy(np.array(found[name])) for name in found.files if name != "places"}
        network = Planned(arrays["mean"], arrays["std"], found["places"].tolist(), arrays["spread"])
        network.load_state_dict(arrays)
    if not all(torch.isfinite(a).all() for a in arrays.values()):
        raise BadInput(f"{path}: has numbers that are not finite")
    return network.eval()
