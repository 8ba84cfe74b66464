"""A thousand arms that might be yours: the same motion of all of them, drawn from what is not known about the model.

python examples/draw_worlds.py
"""

import numpy as np

import gapless
from gapless.learn import draw_from


def main() -> None:
    twin = gapless.Twin.load("arm")
    worlds = gapless.Worlds(twin, 1000, draw_from("wide", twin), np.random.default_rng(0), signals=("q",))
    command = worlds.home_command
    command[1] += 0.3  # the shoulder is told to lift the arm by 0.3 rad
    for _ in range(50):
        worlds.step(command)
    low, middle, high = np.degrees(np.percentile(worlds.readings["q"] - command, [5, 50, 95], axis=0))
    print("after a second, away from the command [deg]:")
    for i, joint in enumerate(twin.joints):
        print(f"  {joint:<16}{middle[i]:6.2f}   ({low[i]:.2f} to {high[i]:.2f} in 90 % of robots)")


if __name__ == "__main__":
    main()
