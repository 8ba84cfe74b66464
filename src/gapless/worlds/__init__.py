"""Worlds: many copies of a twin, each with its own parameters, stepped together on `mujoco.batch`.

`Worlds` sends commands through a path that delays, jitters and loses them, steps physics, and reads sensors through a path
that delays, skews, biases and loses readings. `gapless.delay` holds the arithmetic of both delays, live and for a whole log.
"""

from gapless.worlds.command_path import Stream
from gapless.worlds.drive_commands import DriveCommands, drive_commands
from gapless.worlds.engine import quiet
from gapless.worlds.film import base_poses, film
from gapless.worlds.initial_state import SPAN as VELOCITY_SPAN
from gapless.worlds.motions import multisine, periods as motion_periods, plan as plan_motion
from gapless.worlds.recording import record
from gapless.worlds.replayer import BASE as BASE_SIGNALS, Replay, Replayer, replay
from gapless.worlds.rollout import Sampler
from gapless.worlds.sense import Sense, age_of
from gapless.worlds.standin import (
    Spec as StandInSpec,
    StandIn,
    build as build_standin,
    common_signal,
    draw as draw_standin,
    dump as dump_standin,
    hidden as hidden_standin,
    load as load_standin,
)
from gapless.worlds.view import GHOST, open_scene, show as view_replay, with_ghost
from gapless.worlds.worlds import Worlds
