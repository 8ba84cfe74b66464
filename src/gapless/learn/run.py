"""A training run: from a task, a robot and a belief to a folder with a policy; stops and goes on at any time."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import gapless
from gapless import files as disk
from gapless.errors import BadInput
from gapless.learn.environment import Environment, Frame
from gapless.learn.ground import on_terrain
from gapless.learn.presets import draw_from
from gapless.learn.settings import PPOSettings
from gapless.learn.task import Task
from gapless.learn.tasks import task_of
from gapless.policy import Contract, checks, load_policy, onnx_of, recurrent_of, save_policy
from gapless.robots import files_of
from gapless.twin import Belief, Gains, Twin, load_belief, load_recipe

if TYPE_CHECKING:
    from gapless.learn.learner import Deterministic, Learner, Progress

Golden = tuple[Frame, ...]
"""Observations (frames, width) and the actions that were given to them."""

FORMAT = "gapless run 1"
BELIEF = "belief.json"
HELD_OUT = 96
"""Worlds that no training sees, in which checkpoints are compared."""
HELD_OUT_SECONDS = 5.0
GOLDEN = 64
"""Frames that prove an exported policy."""
MAX_CHECKPOINT = 1 << 30  # bytes


@dataclass(frozen=True)
class Run:
    """What a training is given; it is written into its folder and read from there when it goes on."""

    task: str
    robot: str
    preset: str = "wide"
    belief: str = ""
    """Path of a belief file; empty for none."""
    seed: int = 0
    history: int = 1
    residual: bool = False
    """Whether the policy adds to an open-loop gait."""
    kp: float | None = None
    kd: float | None = None
    terrain: str = "flat"
    settings: PPOSettings = field(default_factory=PPOSettings)
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Of the robot's files and the belief's when the training began; filled in when the run is saved."""

    def __post_init__(self) -> None:
        checks.texts(self, "run", "task", "robot", "preset", "belief", "terrain")
        if not isinstance(self.sha256, Mapping):
            raise BadInput("sha256: a table of hashes was expected")
        checks.whole(self.seed, "seed", 0, 1 << 32)
        checks.whole(self.history, "history", 1, 1000)
        for name in ("kp", "kd"):
            if getattr(self, name) is not None:
                checks.number(getattr(self, name), name, 0.0)
        if not isinstance(self.residual, bool):
            raise BadInput(f"residual: true or false was expected, not {str(self.residual)[:40]}")

    def twin(self) -> Twin:
        """The robot, with the mechanisms that its belief is about, and gains where they were given."""
        kp, kd = ({} if gain is None else {"*": gain} for gain in (self.kp, self.kd))
        add = [Gains(kp=kp, kd=kd)] if kp or kd else []
        return load_recipe(self.robot, self.belief, add) if self.belief else Twin.load(self.robot, add=add)

    def build(self, task: Task | None = None, lot: int = 0) -> tuple[Twin, Task, Belief | None]:
        """The robot on a floor, the task (where it is not one's own, which is then given), and what worlds are drawn from.

        lot: where those are robots drawn once, which; see `draw_from`.
        """
        twin = self.twin()
        belief = load_belief(self.belief) if self.belief else None
        task = task_of(self.task, twin, self.history, self.residual) if task is None else task
        return twin, task, draw_from(self.preset, twin, belief, lot)

    def hashes(self) -> dict[str, str]:
        """Of the robot's files and the belief's as they are now."""
        files = {"robot": files_of(self.robot), **({"belief": [Path(self.belief)]} if self.belief else {})}
        return {what: disk.sha256(*of) for what, of in files.items()}

    def save(self, folder: Path) -> None:
        """Write what a training is given into its folder, with a copy of the belief."""
        if self.belief and Path(self.belief).resolve() != (folder / BELIEF).resolve():
            with disk.atomic(folder / BELIEF) as part:
                part.write_bytes(Path(self.belief).read_bytes())
        table = {"format": FORMAT, "version": gapless.__version__, **dataclasses.asdict(self), "sha256": self.hashes()}
        with disk.atomic(folder / "run.json") as part:
            part.write_text(json.dumps(table, indent=1))


def load_run(folder: Path) -> Run:
    """What the training in a folder was given."""
    path = folder / "run.json"
    try:
        table = json.loads(disk.text(path, 1 << 20))
    except (ValueError, RecursionError) as error:
        raise BadInput(str(error) if isinstance(error, BadInput) else f"{path}: not JSON") from None
    if not isinstance(table, dict) or table.pop("format", None) != FORMAT:
        raise BadInput(f"{path}: not a training run of this version ({FORMAT}); start it anew in another folder")
    version = table.pop("version", None)
    if version != gapless.__version__:
        raise BadInput(f"{path}: written by gapless {version}, and this is {gapless.__version__}; start anew in another folder")
    try:
        given = table["settings"]
        table["belief"] = str(folder / BELIEF) if table.get("belief") else ""
        missing = [f.name for f in dataclasses.fields(PPOSettings) if f.name not in given]
        if missing:
            raise BadInput(f"settings lack {missing[0]}")
        return Run(**table | {"settings": PPOSettings(**given)})
    except (KeyError, TypeError, BadInput) as error:
        raise BadInput(f"{path}: not whole ({disk.reason(error)})") from None


@dataclass(frozen=True)
class News:
    """What a training says after each iteration."""

    progress: Progress
    held_out: float | None
    """Reward per second in worlds that no training sees, where it was measured just now."""
    best: float
    best_iteration: int


@dataclass
class _Best:
    score: float = -np.inf
    iteration: int = 0


def train(
    run: Run,
    folder: Path,
    tell: Callable[[News], None] = lambda news: None,
    resume: bool = False,
    start: Path | None = None,
    threads: int = 0,
    iterations: int | None = None,
    task: Task | None = None,
) -> None:
    """Train, and leave in the folder: run.json, checkpoint.pt, best.pt, the policy of the best, TensorBoard events.

    Args:
        run: what to train.
        folder: where; made if it is not there.
        tell: called after each iteration; a KeyboardInterrupt ends the training in good order.
        resume: go on from the checkpoint in the folder, bit by bit as if it had never stopped.
        start: folder of a run whose policy is tuned further.
        threads: of physics; 0 for one per core. The result is the same.
        iterations: stop after this many in all, as a run that is interrupted would; all of them unless given.
        task: one's own; that which the run names unless given.
    """
    twin, task, belief = run.build(task)
    unseen = draw_from(run.preset, twin, lot=1) if run.preset == "models30" else belief
    twin = on_terrain(twin, run.terrain, np.random.default_rng([run.seed, 6]))
    # the waiting threads of OpenMP would spin on the cores that physics needs
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import torch

    from gapless.learn.learner import Diverged, Learner

    torch.set_num_threads(1)  # such small networks lose by sharing, and the sums stay the same on any machine
    folder.mkdir(parents=True, exist_ok=True)
    settings = run.settings

    def make(rng: np.random.Generator, hardness: float) -> Environment:
        drawn = belief.narrow(hardness) if settings.widen and belief is not None else belief
        return Environment(twin, task, settings.worlds, drawn, rng, threads)

    hashes = run.hashes()
    for what, known in run.sha256.items() if resume else ():
        if hashes.get(what) != known:
            raise BadInput(f"{folder}: the {what}'s file has changed since the training began; start anew in another folder")
    learner, best = Learner(make, settings, run.seed), _Best()

    def judge() -> float:
        """Compare the policy with the best in held-out worlds."""
        return _judge(learner, make_held_out(twin, task, unseen, run.seed, threads), best, folder, hashes["robot"])

    def keep() -> None:
        """A resumed run goes on from here."""
        state = {**learner.state(), "best": best.score, "best_iteration": best.iteration}
        write_checkpoint(folder / "checkpoint.pt", state)

    tuned = start is not None
    if resume and (folder / "checkpoint.pt").exists():  # else it stopped before the first, and starts as it did then
        state = read_checkpoint(folder / "checkpoint.pt")
        _fits(folder, learner.load, state)
        tuned = learner.iteration == 0  # only a run that began with a policy has a checkpoint there
        best = _fits(folder, lambda state: _Best(float(state["best"]), int(state["best_iteration"])), state)
    elif start is not None:
        load_run(start)  # of this version
        state = read_checkpoint(start / "best.pt")
        _same_meaning(start, load_policy(start).contract, learner.environment.contract)
        _fits(start, learner.start_from, state)
        keep()  # before there is a run to resume
        run.save(folder)
    else:
        run.save(folder)
    last = min(settings.iterations, iterations or settings.iterations)
    if last % settings.every and last < settings.iterations:
        raise BadInput(f"a run stops where its checkpoints are, every {settings.every} iterations, not after {last}")
    progress: Progress | None = None
    try:
        with _events(folder) as write:
            if tuned:
                judge()  # what is tuned further is the best so far
            while learner.iteration < last:
                progress = learner.iterate()
                held_out = None
                if learner.iteration % settings.every == 0 or learner.iteration == last:
                    held_out = judge()
                    keep()
                write(progress, held_out)
                tell(News(progress, held_out, best.score, best.iteration))
    except KeyboardInterrupt:
        if progress is not None and best.score == -np.inf:  # a later one would not be there in a run that was not stopped
            held_out = judge()
            tell(News(progress, held_out, best.score, best.iteration))
        raise
    except Diverged:
        there = np.isfinite(best.score)
        kept = f"keeps the best checkpoint until then (iteration {best.iteration})" if there else "has no checkpoint yet"
        raise BadInput(
            f"training diverged after iteration {learner.iteration}: {folder} {kept}; try a lower --rate or a narrower preset, "
            "and look for jumps in the reward's terms"
        ) from None


def make_held_out(twin: Twin, task: Task, belief: Belief | None, seed: int, threads: int) -> Environment:
    """The same unseen worlds each time, so that checkpoints are compared in pairs."""
    return Environment(twin, task, HELD_OUT, belief, np.random.default_rng([seed, 1 << 40]), threads)


def _judge(learner: Learner, environment: Environment, best: _Best, folder: Path, model_sha256: str) -> float:
    """Run the policy in held-out worlds; where it is the best so far, keep and export it."""
    policy = learner.deterministic()
    score, golden = evaluate(policy, environment)
    if score > best.score:
        write_checkpoint(folder / "best.pt", learner.state())
        export(policy, environment, golden, folder, model_sha256)
        best.score, best.iteration = score, learner.iteration  # now it is there: who is interrupted before does it again
    return score


def evaluate(policy: Deterministic, environment: Environment) -> tuple[float, Golden]:
    """Reward per second of a policy, and golden frames: one robot in a row from its start, as a memory needs."""
    observation = environment.reset()["policy"]
    total, steps = 0.0, round(HELD_OUT_SECONDS / environment.twin.control_dt)
    frames: list[tuple[Frame, Frame]] = []
    in_a_row = True
    for _ in range(steps):
        action = policy(observation)
        if in_a_row and len(frames) < GOLDEN:
            frames.append((observation[0].copy(), action[0].copy()))
        step = environment.step(action)
        ended = step.failed | step.timeout
        policy.reset(ended)
        in_a_row &= not ended[0]
        total += float(step.reward.mean())
        observation = step.observation["policy"]
    return total / HELD_OUT_SECONDS, tuple(np.array(x) for x in zip(*frames, strict=True))


def export(policy: Deterministic, environment: Environment, golden: Golden, folder: Path, model_sha256: str) -> None:
    """Write the policy as any runtime takes it."""
    contract = environment.contract
    contract = dataclasses.replace(
        contract,
        recurrent=recurrent_of(policy.memory),
        source=dataclasses.replace(contract.source, run=folder.name),
        robot=dataclasses.replace(contract.robot, model_sha256=model_sha256),
        timing=dataclasses.replace(contract.timing, delay_range=delays(environment)),
    )
    save_policy(folder, contract, onnx_of(policy.network, contract.width, policy.memory), *golden)


DELAYS = ("action", "observation")


def delays(environment: Environment) -> tuple[float, float]:
    """Least and most delay from reading to command in worlds that an environment draws [s]."""
    belief, space = environment.worlds.belief, environment.twin.space
    drawn = environment.twin.expand(belief.sample(1000, np.random.default_rng(0)), belief.space)
    of = {q: [i for i, p in enumerate(space.parameters) if p.quantity == f"latency.{q}"] for q in DELAYS}
    low, high = (sum(end(drawn[:, of[q]], axis=1) for q in DELAYS if of[q]) for end in (np.min, np.max))
    jitter = [i for i, p in enumerate(space.parameters) if p.quantity == "latency.jitter"]
    return float(np.min(low)), float(np.max(high + drawn[:, jitter].max(axis=1, initial=0.0)))


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Whole or not at all."""
    import torch

    with disk.atomic(path) as part:
        torch.save(copy.copy(state), part)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint; files from elsewhere may be anything, so nothing in them is run."""
    import torch

    if disk.regular(path).stat().st_size > MAX_CHECKPOINT:
        raise BadInput(f"{path}: larger than {MAX_CHECKPOINT >> 20} MB, which is no checkpoint of such a policy")
    try:
        state = torch.load(path, weights_only=True)
    except Exception as error:  # torch, zipfile and pickle each have their own
        raise BadInput(f"{path}: not a checkpoint ({disk.reason(error)})") from None
    if not isinstance(state, dict) or not {"actor_state_dict", "critic_state_dict", "iteration"} <= set(state):
        raise BadInput(f"{path}: not a checkpoint of a training run")
    return state


def _same_meaning(start: Path, given: Contract, wanted: Contract) -> None:
    """Raise where networks of the same size would mean something else."""
    if (given.action.reference is None) != (wanted.action.reference is None):
        raise BadInput(f"{start}: only one of its policy and this run adds to a gait; both need --residual, or neither")
    for what, a, b in (
        ("joints", given.joints.names, wanted.joints.names),
        ("observation", given.observation, wanted.observation),
        ("actions' scales", given.action.scale, wanted.action.scale),
        ("home pose", given.action.offset, wanted.action.offset),
    ):
        if a != b:
            raise BadInput(f"{start}: its {what} differ from those of this task and robot: it cannot be tuned further for them")


def _fits(folder: Path, load: Callable[[dict[str, Any]], Any], state: dict[str, Any]) -> Any:
    try:
        return load(state)
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadInput(f"{folder}: its networks are of another task, robot or size ({disk.reason(error)})") from None


@contextlib.contextmanager
def _events(folder: Path) -> Iterator[Callable[[Any, float | None], None]]:
    """TensorBoard, where it is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        yield lambda progress, held_out: None
        return
    writer = SummaryWriter(log_dir=str(folder / "tensorboard"), flush_secs=10)

    def write(progress: Progress, held_out: float | None) -> None:
        at = progress.iteration
        for name, value in progress.terms.items():
            writer.add_scalar("falls_per_second" if name == "falls" else f"reward/{name}", value, at)
        for name, value in progress.metrics.items():
            writer.add_scalar(f"metric/{name}", value, at)
        for name, value in progress.losses.items():
            writer.add_scalar(f"loss/{name}", value, at)
        writer.add_scalar("reward", progress.reward, at)
        writer.add_scalar("learning_rate", progress.rate, at)
        writer.add_scalar("action_std", progress.std, at)
        writer.add_scalar("steps_per_second", progress.steps / (progress.collect + progress.update), at)
        if held_out is not None:
            writer.add_scalar("held_out_reward", held_out, at)

    try:
        yield write
    finally:
        writer.close()
