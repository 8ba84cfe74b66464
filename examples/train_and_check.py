"""A policy for a servo, learned in seconds in worlds drawn from the ranges of the field, then checked before it may run.

python examples/train_and_check.py

Leaves the policy (ONNX with its contract) in out/lift. So short a training is not a good one: see `gapless train --help`.
"""

from pathlib import Path

import gapless
from gapless.check import check

OUT = Path("out/lift")


def main() -> None:
    run = gapless.plan_run("swing", "bench", settings={"iterations": 5, "worlds": 64})
    gapless.train(run, OUT)
    print(gapless.enter(OUT).judge(draws=1))  # on robots that it has never met, beside a policy that does nothing
    verdict = check(OUT, "bench", seconds=4.0)  # does the file say what a runtime must know, and is it true?
    print(verdict)


if __name__ == "__main__":
    main()
