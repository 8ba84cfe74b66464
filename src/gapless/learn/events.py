"""TensorBoard events of a training."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gapless.learn.learner import Progress


@contextlib.contextmanager
def events(folder: Path) -> Iterator[Callable[[Any, float | None, float | None], None]]:
    """TensorBoard, where it is installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        yield lambda progress, unseen, entropy: None
        return
    writer = SummaryWriter(log_dir=str(folder / "tensorboard"), flush_secs=10)

    def write(progress: Progress, unseen: float | None, entropy: float | None) -> None:
        figures = {"falls_per_second" if name == "falls" else f"reward/{name}": value for name, value in progress.terms.items()}
        figures |= {f"metric/{name}": value for name, value in progress.metrics.items()}
        figures |= {f"loss/{name}": value for name, value in progress.losses.items()}
        figures |= {"reward": progress.reward, "learning_rate": progress.rate, "action_std": progress.std}
        figures["steps_per_second"] = progress.steps / (progress.collect + progress.update)
        figures |= {} if unseen is None else {"unseen_reward": unseen}
        figures |= {} if entropy is None else {"ranges_entropy": entropy}
        for name, value in figures.items():
            writer.add_scalar(name, value, progress.iteration)

    try:
        yield write
    finally:
        writer.close()
