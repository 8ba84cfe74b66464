"""How far is a model from its robot, and why? A servo on a bench whose gain and friction its model has wrong.

python examples/measure_gap.py

With a robot of your own, `log` is gapless.read("motion.mcap") and "bench" the path of its MJCF or URDF.
"""

from pathlib import Path

import numpy as np

import gapless
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record

ROBOT = StandInSpec(
    "bench", change={"gains.kp/*": "x0.7", "friction.coulomb/*": "x3"}, sensors={"noise_q": 0.0005, "noise_dq": 0.02}
)


def main() -> None:
    robot = StandIn(ROBOT)
    log = record(robot, plan_motion("rich", build_standin(ROBOT), 6.0, np.random.default_rng(0)))
    found = gapless.diagnose(gapless.as_given("bench", log), [log])
    print(found)  # by joint and time ahead beside the baselines, the causes with their shares, what to do next
    Path("out").mkdir(exist_ok=True)
    found.page("out/gap.html")


if __name__ == "__main__":
    main()
