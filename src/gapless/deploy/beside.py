"""What runs beside a run, in a thread that its loop never waits for: a line that says how it goes, steering, and the view."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import numpy as np

from gapless.deploy.realtime import claim
from gapless.deploy.recording import RANK
from gapless.deploy.runner import Runner
from gapless.deploy.steer import Steer
from gapless.deploy.view import View

EVERY = 0.05
"""s between two looks."""


@contextlib.contextmanager
def beside(runner: Runner, say: Callable[[str], None], steer: Steer | None, view: View | None) -> Iterator[None]:
    """Look at the run until this ends: `say` gets a line, `steer` is asked, and the view is shown what it needs."""
    ended = threading.Event()
    if steer is not None:
        steer.take(runner)

    def look() -> None:
        claim(RANK)  # else it could hold the interpreter that the loop waits for, while nobody lets it run
        while not ended.wait(EVERY):
            if steer is not None:
                steer.poll()
            say(status(runner))
            if view is not None:
                _show(runner, view)

    thread = threading.Thread(target=look, name="beside", daemon=True)
    with steer.typing() if steer is not None else contextlib.nullcontext():
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            if view is not None:
                view.close()


def status(runner: Runner) -> str:
    """How a run goes, in a line."""
    safety, watch = runner.safety, runner.watch
    asked = ", ".join(f"{value:.2f}" for value in runner.pilot.runtime.command[0])
    parts = [runner.phase, f"{runner.outcome.ticks * runner.link.period:.1f} s", f"asked for {asked}" if asked else ""]
    if watch is not None:
        parts.append(f"gap {watch.level:.2f} of the envelope{': WARNING' if watch.warned else ''}")
    parts.append(f"{safety.rung.name}: {safety.ladder.reason}" if safety.rung else "")
    return ", ".join(part for part in parts if part)


def _show(runner: Runner, view: View) -> None:
    link, watch = runner.link, runner.watch
    twin = link.q if watch is None or watch.prediction is None else watch.prediction
    level, apart = (watch.level, watch.error) if watch is not None else (0.0, 0.0)
    torque = float(np.max(np.abs(link.tau) / runner.limits.torque))
    head = np.array([runner.outcome.ticks * link.period, float(runner.safety.rung), level, 1e3 * apart, torque])
    view.show(head, link.imu[:4] if len(link.imu) else np.array([1.0, 0.0, 0.0, 0.0]), link.q, twin)
