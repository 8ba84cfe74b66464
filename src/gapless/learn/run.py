"""A training run: from a task, a robot and a belief to a folder with a policy; stops and goes on at any time.

run = plan_run("velocity", "quadruped", belief="fitted/belief.json")
train(run, Path("runs/walk"))
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gapless import files as disk
from gapless.checks import Checked, checked, flag, mapping, number, part_of, text, whole
from gapless.errors import BadInput
from gapless.learn.adr import GROW, SHRINK, GrowingRanges, lasting
from gapless.learn.checkpoint import read_checkpoint, write_checkpoint
from gapless.learn.context import context_of, with_context
from gapless.learn.contract import build_contract
from gapless.learn.environment import Environment
from gapless.learn.events import events
from gapless.learn.ground import on_terrain
from gapless.learn.networks import FILE, load_networks, save_networks
from gapless.learn.presets import draw_from
from gapless.learn.settings import PPOSettings, ppo_settings
from gapless.learn.task import Task
from gapless.learn.tasks import task_of
from gapless.learn.trained import evaluate, save_trained
from gapless.plain import read_json, write_json
from gapless.policy import Contract, load_policy
from gapless.robots import files_of
from gapless.twin import Belief, Stated, Twin, belief_entropy, load_belief, recipe_of, save_belief

if TYPE_CHECKING:
    from gapless.learn.learner import Progress

FORMAT = "gapless run 1"
BELIEF, RANGES = "belief.json", "ranges.json"
HISTORY = "ranges"
"""Folder of how ranges grew: history.json and its page."""
UNSEEN = 96
"""Robots that no training sees, on which checkpoints are compared."""
MISFIT = RuntimeError, KeyError, ValueError, TypeError, AttributeError
"""What networks of another shape raise when they are loaded."""


@dataclass(frozen=True)
class Run(Checked):
    """What a training is given; it is written into its folder and read from there when it is resumed."""

    task: str = checked(text)
    robot: str = checked(text)
    preset: str = checked(text, "wide")
    belief: str = checked(text, "")
    """Path of a belief file; empty for none."""
    seed: int = checked(whole, 0, low=0, high=1 << 32)
    history: int = checked(whole, 1, low=1, high=1000)
    residual: bool = checked(flag, False)
    """Whether the policy adds to an open-loop gait."""
    stated: Stated = checked(part_of, factory=Stated, kind=Stated)
    """What is said of the robot besides its file."""
    terrain: str = checked(text, "flat")
    teacher: bool = checked(flag, False)
    """Whether the policy is told the parameters of its world (`gapless.policy.Context`)."""
    latent: int = checked(whole, 0, low=0, high=256)
    """Of a teacher: numbers that an encoder makes of them; 0 shows them as they are."""
    changes: float = checked(number, 0.0, low=0.0, high=1e6)
    """Mean time between changes of a robot's parameters in mid-episode [s]; 0 for none."""
    adr: bool = checked(flag, False)
    """Whether ranges grow with success; the preset is then only what checkpoints are compared on."""
    adr_grow: float = checked(number, GROW, low=0.0, high=1.0)
    adr_shrink: float = checked(number, SHRINK, low=0.0, high=1.0)
    """Success at which a range grows, and at which it shrinks."""
    settings: PPOSettings = checked(part_of, factory=PPOSettings, kind=PPOSettings)
    sha256: Mapping[str, str] = checked(mapping, factory=dict)
    """Of the robot's files and the belief's when the training began; filled in when the run is saved."""

    def twin(self) -> Twin:
        """The robot, with the mechanisms that its belief is about, and gains where they were given."""
        return self.stated.twin(self.robot, belief=self.belief or None)

    def build(self, task: Task | None = None, lot: int = 0) -> tuple[Twin, Task, Belief | None]:
        """The robot on a floor, the task, and what worlds are drawn from.

        Args:
            task: the user's own; the one that the run names unless given.
            lot: which robots, for a preset that draws them once; see `draw_from`.
        """
        twin = self.twin()
        belief = load_belief(self.belief) if self.belief else None
        task = task_of(self.task, twin, self.history, self.residual) if task is None else task
        return twin, task, draw_from(self.preset, twin, belief, lot)

    def contract(self, twin: Twin, task: Task, belief: Belief | None) -> Contract:
        """Of the policy that is trained; a teacher's has a context."""
        plain = build_contract(twin, task)
        return with_context(plain, context_of(belief, "encoder" if self.latent else "truth")) if self.teacher else plain

    def environment(
        self,
        twin: Twin,
        task: Task,
        n: int,
        belief: Belief | None,
        rng: np.random.Generator,
        threads: int,
        contract: Contract | None = None,
    ) -> Environment:
        """Worlds of a belief in which robots change as the run says."""
        made = Environment(twin, task, n, belief, rng, threads, contract)
        made.change_every = self.changes or np.inf
        return made

    def ranges(self, twin: Twin) -> GrowingRanges | None:
        """The ranges that grow, as they begin; None where they do not."""
        if not self.adr:
            return None
        belief, lasts = load_belief(self.belief) if self.belief else None, self.settings.steps * self.settings.every
        return GrowingRanges.about(twin, belief, self.adr_grow, self.adr_shrink, lasts)

    def hashes(self) -> dict[str, str]:
        """Of the robot's files and the belief's as they are now."""
        files = {"robot": files_of(self.robot), **({"belief": [Path(self.belief)]} if self.belief else {})}
        return {what: disk.sha256(*of) for what, of in files.items()}

    def save(self, folder: Path) -> None:
        """Write what a training is given into its folder, with a copy of the belief."""
        if self.belief and Path(self.belief).resolve() != (folder / BELIEF).resolve():
            with disk.atomic(folder / BELIEF) as part:
                part.write_bytes(Path(self.belief).read_bytes())
        header = {"format": FORMAT, "version": metadata.version("gapless")}
        write_json(folder / "run.json", {**header, **dataclasses.asdict(self), "sha256": self.hashes()})


def plan_run(
    task: str,
    robot: str = "quadruped",
    belief: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    settings: dict[str, Any] | None = None,
    **more: Any,
) -> Run:
    """What a training is given, checked: settings that suit the task and robot, with those that a user states instead.

    Args:
        task: velocity, stand, reach, drive or swing.
        robot: name or path.
        belief: file of what is known about the robot, as a fit writes it.
        preset: what worlds are drawn from; `narrow` with a belief and `wide` without unless given.
        settings: of PPO, in place of those that suit the task; None leaves one as it is.
        more: other fields of `Run`: seed, history, residual, stated, terrain, teacher, latent, changes, adr.
    """
    if more.get("adr"):
        if preset is not None:
            raise BadInput("ranges that grow have an owner: give either --adr or --preset")
        if more.get("teacher"):
            raise BadInput("a teacher is told the parameters of fixed ranges: give either --adr or --adapt")
        preset = "informed" if belief else "wide"
    stated = {name: value for name, value in (settings or {}).items() if value is not None}
    if "iterations" in stated:  # what grows over a training grows at each checkpoint: a short one needs them too
        stated.setdefault("every", max(1, min(PPOSettings.every, stated["iterations"] // 10)))
    preset = preset or ("narrow" if belief else "wide")
    robot = str(Path(robot).resolve()) if Path(robot).is_file() else robot
    run = Run(task, robot, preset, str(Path(belief).resolve()) if belief else "", **more)
    twin = run.twin()
    chosen = dataclasses.replace(ppo_settings(task, twin), **stated)
    if run.adr:
        chosen = lasting(chosen, task_of(task, twin).episode.seconds, twin.control_dt)
    return dataclasses.replace(run, settings=chosen)


def load_run(folder: Path) -> Run:
    """What the training in a folder was given."""
    path = folder / "run.json"
    table = read_json(path, 1 << 20)
    if table.pop("format", None) != FORMAT:
        raise BadInput(f"{path}: not a training run of this version ({FORMAT}); start it anew in another folder")
    version = table.pop("version", None)
    if version != metadata.version("gapless"):
        raise BadInput(
            f"{path}: written by gapless {version}, and this is {metadata.version('gapless')}; start anew in another folder"
        )
    table["belief"] = str(folder / BELIEF) if table.get("belief") else ""
    with disk.within(f"{path}: incomplete or damaged"):
        missing = [f.name for f in dataclasses.fields(PPOSettings) if f.name not in mapping(table.get("settings"), "settings")]
        if missing:  # a default of today may not be that of the training
            raise BadInput(f"settings lack {missing[0]}")
        return part_of(table, "the run", Run)


@dataclass(frozen=True)
class News:
    """What a training says after each iteration."""

    progress: Progress
    unseen: float | None
    """Reward per second on robots that no training sees, where it was measured just now."""
    best: float
    best_iteration: int
    entropy: float | None = None
    """Of ranges that grow [nats a parameter]."""
    said: str = ""
    """What a person should know now; mostly nothing."""


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
    """Train, and leave in the folder: run.json, checkpoint.pt, best.npz, the best policy, TensorBoard events.

    Args:
        run: what to train.
        folder: where; made if it does not exist.
        tell: called after each iteration; a KeyboardInterrupt raised in it ends the training in good order.
        resume: go on from the checkpoint in the folder; the result is bit by bit that of a run that never stopped.
        start: folder of a run whose policy is tuned further.
        threads: of physics; 0 for one per core. The result does not depend on it.
        iterations: stop after this many in all, as an interrupted run would; by default after all of them.
        task: the user's own; the one that the run names unless given.
    """
    settings = run.settings
    last = min(settings.iterations, iterations or settings.iterations)
    if last % settings.every and last < settings.iterations:
        raise BadInput(f"a run can only stop at a checkpoint, every {settings.every} iterations, not after {last}")
    training = _Training(run, folder, threads, task, resume)
    from gapless.learn.learner import Diverged  # needs torch, which a training has loaded by now

    tuned = training.begin(resume, start)
    progress: Progress | None = None
    try:
        with events(folder) as write:
            if tuned:
                training.judge()  # the policy that is tuned further is the best so far
            while training.learner.iteration < last:
                progress, unseen = training.learner.iterate(), None
                if progress.iteration % settings.every == 0 or progress.iteration == last:
                    unseen = training.judge()
                said, entropy = training.moved(progress.iteration)
                if unseen is not None:
                    training.keep()
                write(progress, unseen, entropy)
                tell(News(progress, unseen, training.best, training.best_iteration, entropy, said))
    except KeyboardInterrupt:
        if progress is not None and training.best == -np.inf:  # else a run that was not stopped would not have this policy
            unseen = training.judge()
            tell(News(progress, unseen, training.best, training.best_iteration))
        raise
    except Diverged:
        best = f"keeps the best checkpoint until then (iteration {training.best_iteration})"
        raise BadInput(
            f"training diverged after iteration {training.learner.iteration}: {folder} "
            f"{best if np.isfinite(training.best) else 'has no checkpoint yet'}; try a lower --rate or a narrower preset, "
            "and look for jumps in the terms of the reward"
        ) from None


class _Training:
    """A training under way: the learner, the best policy so far and where both are kept."""

    def __init__(self, run: Run, folder: Path, threads: int, task: Task | None, resume: bool):
        twin, task, belief = run.build(task)
        import torch

        from gapless.learn.learner import Learner

        torch.set_num_threads(1)  # sharing such small networks costs more than it gains, and sums do not depend on the machine
        self._run, self._folder, self._threads = run, folder, threads
        self._hashes = run.hashes()
        for what, known in run.sha256.items() if resume else ():
            if self._hashes.get(what) != known:
                raise BadInput(
                    f"{folder}: the {what}'s file has changed since the training began; start anew in another folder"
                )
        self._unseen = draw_from(run.preset, twin, lot=1) if run.preset == "models30" else belief
        self.ranges = ranges = run.ranges(twin)
        self._twin, self._task = on_terrain(twin, run.terrain, np.random.default_rng([run.seed, 6])), task
        self.best, self.best_iteration = -np.inf, 0
        """Reward per second on unseen robots of the best policy, and its iteration."""

        def make(rng: np.random.Generator, hardness: float) -> Environment:
            if ranges is not None:  # which own all of the difficulty
                return Environment(self._twin, task, run.settings.worlds, ranges.box, rng, threads, ranges=ranges)
            drawn = belief.narrow(hardness) if run.settings.widen and belief is not None else belief
            return run.environment(self._twin, task, run.settings.worlds, drawn, rng, threads, self._contract)

        self._contract = run.contract(self._twin, task, belief)
        self.learner = Learner(make, run.settings, run.seed, run.latent, None if ranges is None else lambda: ranges.hardness)

    def begin(self, resume: bool, start: Path | None) -> bool:
        """Take up a checkpoint, or save what the run is given; whether a policy of another run is tuned further."""
        folder, learner = self._folder, self.learner
        if resume and (folder / "checkpoint.pt").exists():  # else it stopped before its first, and begins as it did then
            state = read_checkpoint(folder / "checkpoint.pt")
            with disk.refusing(f"{folder}: its networks are of another task, robot or size", *MISFIT):
                if self.ranges is not None:
                    self.ranges.load(state["ranges"])
                learner.load(state)
                self.best, self.best_iteration = float(state["best"]), int(state["best_iteration"])
            return learner.iteration == 0  # only a run that began with a policy has a checkpoint there
        if start is not None:
            load_run(start)  # of this version
            networks, columns = load_networks(start / FILE)
            _same_meaning(start, load_policy(start).contract, learner.environment.contract)
            if self.ranges is not None:
                self.ranges.hardness = 1.0  # a policy that withstands pushes is not spared them
            with disk.refusing(f"{start}: its networks are of another task, robot or size", *MISFIT):
                learner.start_from(networks, columns)
        folder.mkdir(parents=True, exist_ok=True)
        if start is not None:
            self.keep()  # before there is a run to resume
        self._run.save(folder)
        return start is not None

    def keep(self) -> None:
        """Write what a resumed run goes on from."""
        state = {**self.learner.state(), "best": self.best, "best_iteration": self.best_iteration}
        if self.ranges is not None:
            state["ranges"] = self.ranges.state()
            save_belief(self.ranges.box, self._folder / RANGES, recipe_of(self._twin))
            self.ranges.history(self._twin.name).save(self._folder / HISTORY)
        write_checkpoint(self._folder / "checkpoint.pt", state)

    def moved(self, iteration: int) -> tuple[str, float | None]:
        """Remember ranges that grow as they are after an iteration: what is to be said of them, and their entropy."""
        if self.ranges is None:
            return "", None
        self.ranges.keep(iteration)
        tenth = max(1, math.ceil(self._run.settings.iterations / 10))
        said = self.ranges.in_vain(iteration / self._run.settings.iterations) if iteration >= tenth else ""
        return said, belief_entropy(self.ranges.box)

    def judge(self) -> float:
        """Run the policy on unseen robots; where it is the best so far, keep it."""
        rng = np.random.default_rng([self._run.seed, 1 << 40])  # the same robots each time: checkpoints are compared in pairs
        environment = self._run.environment(self._twin, self._task, UNSEEN, self._unseen, rng, self._threads, self._contract)
        policy = self.learner.deterministic()
        score, golden = evaluate(policy, environment)
        if score > self.best:
            save_networks(self._folder / FILE, self.learner.state(), self.learner.environment.critic_columns)
            drawn = self.ranges.box if self.ranges else None
            save_trained(policy, environment, golden, self._folder, self._hashes["robot"], drawn)
            self.best, self.best_iteration = score, self.learner.iteration  # only now: what was interrupted is done again
        return score


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
