"""Which motion tells most about a robot? Ten seconds for a servo, within its limits, beside a chirp and a multisine.

python examples/design_motion.py

Leaves out/motion.csv to play on the robot; `gapless excite` does the same and searches longer.
"""

from pathlib import Path

import numpy as np

import gapless
from gapless.identify import WORK, limits_of


def main() -> None:
    twin = gapless.Twin.load("bench")
    limits = limits_of(twin, speed=2.0, torque=0.8)  # rad/s, share of the torque limit
    motion = gapless.excite(twin, None, 10.0, limits, np.random.default_rng(0), work=0.01 * WORK)
    print(motion)
    Path("out").mkdir(exist_ok=True)
    motion.write_motion(Path("out/motion.csv"))


if __name__ == "__main__":
    main()
