"""Worlds: many copies of a twin, each with its own parameters, stepped together on `mujoco.batch`.

`Worlds` sends commands through a path that delays, jitters and loses them, steps physics, and reads sensors through a path
that delays, skews, biases and loses readings. `path.py` holds both paths; replay and the stand-in use the same code.
"""

from gapless.worlds.replay import Replay, Replayer, replay
from gapless.worlds.worlds import Failure, Worlds, home

__all__ = ["Failure", "Replay", "Replayer", "Worlds", "home", "replay"]
