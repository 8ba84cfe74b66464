"""`gapless replay`: drive logs through a model and show how far it is from the robot."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Flag, InAir, Json, Logs, Mapping, Model


def replay(
    model: Model,
    logs: Logs,
    *,
    mapping: Mapping = None,
    window: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None,
    end: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None,
    about: About = ABOUT,
    belief: Annotated[Path | None, tyro.conf.arg(metavar="JSON", help_behavior_hint="")] = None,
    in_air: InAir = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="HTML", help_behavior_hint="")] = None,
    view: Flag = False,
    json: Json = False,
) -> None:
    """Drive logs through a model: measured, replayed and commanded motion, and the error by joint and horizon.

    For example `gapless replay go2.xml walk.mcap --kp 20 --kd 1.5`, or
    `gapless replay so101.xml motions/multisine --mapping so101 --window 0.5 --set "friction.coulomb/*=0.1"`.

    Args:
        window: Start anew from the measured state every S seconds; runs free from the first sample unless given.
        end: Use only the first S seconds of each log.
        belief: A belief whose mean is used, such as belief.json of `gapless fit`.
        out: A page with curves of every joint and both robots moving; nothing is written unless given.
        view: Show both robots in the browser, the replayed one as a ghost.
    """
    from rich.console import Console
    from rich.progress import Progress

    from gapless.errors import BadInput
    from gapless.logs import load_mapping, read
    from gapless.measure import replay_logs
    from gapless.twin import known_values, mean_values
    from gapless.worlds import view_replay

    for option, seconds in (("window", window), ("end", end)):
        if seconds is not None and not 0 < seconds < float("inf"):
            raise BadInput(f"--{option} must be a positive number of seconds, not {seconds:g}")
    options.can_write(out, *options.PAGE)
    stated = about.stated()
    robot, paths = stated.robot(model), options.log_paths(logs)
    names = load_mapping(mapping) if mapping else None
    twin = replace(stated, values={}).twin(robot, read(paths[0], names), belief, in_air)
    values = mean_values(twin, belief, known_values(twin, list(stated.values.items())))
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=len(paths) < 2 or not console.is_terminal) as progress:
        task = progress.add_task("replaying", total=len(paths))
        result = replay_logs(twin, (read(path, names) for path in paths), values, window, end, lambda: progress.advance(task))
    options.show(result, json, out)
    if view:
        view_replay(twin, next(iter(result.replays.values())))
