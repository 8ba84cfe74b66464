"""Meta: MAML and NoRML on robots; the training, and the one step on a robot that follows it.

train_gradient("norml", load_plain(Path("runs/wide")), Path("runs/norml"), 400_000, 0, 0, print)
print(one_step("runs/norml", "secret.toml", "adapted", budget=10))
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gapless import files as disk
from gapless.adapt.gradient import Collect, Episodes, Inner, gains, learn, stepped
from gapless.adapt.headed import Headed, Plain, load_plain
from gapless.adapt.lots import Lots, keep
from gapless.adapt.maml import Rewards
from gapless.adapt.norml import Learned
from gapless.adapt.on_one import OnOne
from gapless.adapt.on_robot import Given
from gapless.adapt.result import Adapted
from gapless.adapt.search import GIVE_UP, MOST, Trial
from gapless.adapt.trials import Watch
from gapless.errors import BadInput
from gapless.learn import Deterministic, Frame, Step

FILE = "meta.npz"
ROBOTS, EACH = 8, 8
"""In an iteration of the outer loop, and episodes on each of them, before the step and after it."""
STEP = {"maml": 1e-3, "norml": 1e-2}
"""Length of the inner step at first."""
LARGEST = 64 << 20  # bytes


def train_gradient(
    method: str, plain: Plain, folder: Path, steps: int, seed: int, threads: int, tell: Callable[[int, float], None]
) -> None:
    """Learn a policy from which one step gets far with at most so many simulated steps, and leave it in a folder."""
    torch.set_num_threads(1)
    torch.manual_seed(int(np.random.SeedSequence([seed, 0x3A]).generate_state(1)[0]))
    network, rng = plain.headed().train(), np.random.default_rng([seed, 0x3A])
    inner, lots = inner_loop(method, network), Lots(plain, ROBOTS, EACH, rng, threads)

    def draw() -> Collect:
        lots.draw()
        return lambda heads: collected(network, heads, EACH, lots.play, plain.run.settings.gamma)

    learn(network, inner, ROBOTS, draw, max(1, steps // (2 * lots.steps)), tell)
    keep(plain.into(folder), network, threads)
    with disk.atomic(folder / FILE) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, method=np.array(method), **{k: v.numpy() for k, v in inner.state_dict().items()})


def inner_loop(method: str, network: Headed) -> Inner:
    """As it is before any training."""
    if method == "maml":
        return Rewards(STEP[method])
    centre, scale = network.mean[0], network.std[0] + 1e-2
    return Learned(STEP[method], len(centre), network.joints, network.head.detach(), centre, scale)


def collected(
    network: Headed, heads: torch.Tensor, each: int, play: Callable[[Callable[[Frame], Frame], Watch], object], gamma: float
) -> Episodes:
    """Episodes under a head for each robot, with exploration."""
    rows: list[tuple[torch.Tensor, ...]] = []
    by_world = heads.detach().repeat_interleave(each, dim=0)

    def act(seen: Frame) -> Frame:
        with torch.no_grad():
            mean = network.with_heads(torch.from_numpy(seen), by_world)
        return (mean + network.spread * torch.randn(mean.shape)).numpy()

    def watch(seen: Frame, action: Frame, step: Step, alive: np.ndarray) -> None:
        going = alive & ~(step.failed | step.timeout)  # else what follows is another episode
        parts = seen, action, step.observation["policy"], step.reward, alive, going
        rows.append(tuple(torch.tensor(np.asarray(p, np.float32)) for p in parts))

    play(act, watch)
    columns = [torch.stack(part).unflatten(1, (len(heads), each)).transpose(0, 1) for part in zip(*rows, strict=True)]
    seen, action, following, reward, alive, going = columns
    earned = float((reward * alive).sum() / (len(heads) * each))
    return Episodes(
        seen, action, torch.where(going[..., None] > 0, following, seen), gains(reward, alive, gamma), alive, earned
    )


def one_step(
    policy: str | os.PathLike[str],
    robot: Given,
    folder: str | os.PathLike[str],
    budget: int = 50,
    seed: int = 0,
    threads: int = 0,
    tell: Callable[[list[Trial]], None] = lambda trials: None,
) -> Adapted:
    """Take the step of a policy that was trained for it, from episodes with exploration on one robot.

    Args:
        policy: folder of a training of MAML or NoRML.
        robot: a stand-in, its file, or the name or path of a model, which is then the robot.
        folder: of the adapted policy and the result.
        budget: episodes on the robot.
        seed: of exploration and starts.
        threads: of physics, 0 for one per core.
        tell: told all trials.
    """
    if not 2 <= budget <= MOST:
        raise BadInput(f"a step needs a budget of 2 to {MOST} episodes on the robot, not {budget}")
    plain = load_plain(Path(policy))
    network, before = plain.headed(), Deterministic(plain.headed(), {})
    method, inner = load_inner(Path(policy), network)
    one, trials = OnOne(plain.run, plain.contract, robot, seed, threads), list[Trial]()
    torch.manual_seed(seed)

    def play(act: Callable[[Frame], Frame], watch: Watch) -> None:
        trials.extend(one.trials(budget, act, watch))
        tell(trials)

    episodes = collected(network, network.head[None], budget, play, plain.run.settings.gamma)
    stopped = f"all {budget} trials fell" if budget >= GIVE_UP and all(t.fell for t in trials) else ""
    if not stopped:
        with torch.no_grad():
            network.head.copy_(stepped(network, inner, episodes)[0])
    result = one.adapted(method, before, network, trials, Path(folder), policy, stopped)
    plain.save_networks(network, Path(folder))
    return result


def load_inner(folder: Path, network: Headed) -> tuple[str, Inner]:
    """The inner loop that a training left beside its policy, and its method; the file may come from anywhere."""
    path = folder / FILE
    if not path.is_file():
        raise BadInput(
            f"{folder}: its policy was not trained to take a step: train one with gapless train --adapt maml or norml"
        )
    disk.check_zip(path).close()
    if path.stat().st_size > LARGEST:
        raise BadInput(f"{path}: larger than {LARGEST >> 20} MB, which no inner loop is")
    with disk.refusing(f"{path}: not the inner loop of this policy", Exception), np.load(path, allow_pickle=False) as found:
        arrays = {name: torch.from_numpy(np.array(found[name])) for name in found.files if name != "method"}
        method = str(found["method"])
        inner = inner_loop(method, network)
        inner.load_state_dict(arrays)
    if not all(torch.isfinite(a).all() for a in arrays.values()):
        raise BadInput(f"{path}: has numbers that are not finite")
    return method, inner
