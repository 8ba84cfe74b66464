"""What the machine itself takes away: a thread of the highest priority on each core that only sleeps, and how late it wakes.

    python -m bench.witness CORE        # until its input is closed; then one JSON line

Nothing that this system runs can hold it up, so a loop that was late at the same time was held up by what is below: the machine
that this virtual one runs on, or the kernel.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from gapless.deploy import claim, undisturbed

PERIOD, LATE = 0.002, 0.005
"""s between two times that it wakes, and from which lateness on that is written down."""
HIGHEST = 90
"""Priority, above every other of this project."""


@contextlib.contextmanager
def witnesses() -> Iterator[list[tuple[float, float]]]:
    """One on every core; the list holds, after the block, when each woke late and by how much [s]."""
    late = list[tuple[float, float]]()
    cores = sorted(os.sched_getaffinity(0))
    words = [sys.executable, "-m", "bench.witness"]
    every = [subprocess.Popen([*words, str(c)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for c in cores]
    try:
        yield late
    finally:
        for each in every:
            late += [tuple(row) for row in json.loads(each.communicate()[0])]


def main() -> None:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    ended = threading.Event()
    late = list[tuple[float, float]]()

    def watch() -> None:
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            pass
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    with undisturbed():
        claim(HIGHEST)
        gc.disable()
        due = time.monotonic()
        while not ended.is_set():
            due += PERIOD
            time.sleep(max(0.0, due - time.monotonic()))
            now = time.monotonic()
            if now - due > LATE:
                late.append((due, now - due))
                due = now
    print(json.dumps(late))


if __name__ == "__main__":
    main()
