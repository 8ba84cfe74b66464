"""Worlds: many copies of a twin, each with its own parameters, stepped together on `mujoco.batch`.

`Worlds` sends commands through a path that delays, jitters and loses them, steps physics, and reads sensors through a path
that delays, skews, biases and loses readings. `path.py` holds both paths; replay and the stand-in use the same code.
"""

from gapless.worlds.command_path import Stream
from gapless.worlds.drive_commands import drive_commands
from gapless.worlds.engine import quiet
from gapless.worlds.initial_state import SPAN as VELOCITY_SPAN
from gapless.worlds.motions import plan as plan_motion
from gapless.worlds.recording import record
from gapless.worlds.replayer import BASE as BASE_SIGNALS
from gapless.worlds.replayer import Replayer, replay
from gapless.worlds.replays import Replays, replay_logs
from gapless.worlds.rollout import Sampler
from gapless.worlds.standin import Spec as StandInSpec
from gapless.worlds.standin import StandIn, common_signal
from gapless.worlds.standin import build as build_standin
from gapless.worlds.standin import draw as draw_standin
from gapless.worlds.standin import dump as dump_standin
from gapless.worlds.standin import load as load_standin
from gapless.worlds.view import show as view_replay
from gapless.worlds.worlds import Worlds

__all__ = [
    "BASE_SIGNALS",
    "VELOCITY_SPAN",
    "Replayer",
    "Replays",
    "Sampler",
    "StandIn",
    "StandInSpec",
    "Stream",
    "Worlds",
    "build_standin",
    "common_signal",
    "draw_standin",
    "drive_commands",
    "dump_standin",
    "load_standin",
    "plan_motion",
    "quiet",
    "record",
    "replay",
    "replay_logs",
    "view_replay",
]
