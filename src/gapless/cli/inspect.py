"""`gapless inspect`: what is wrong with logs, before anything is fitted to them."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, InAir, Json, Logs, Mapping


def inspect(
    logs: Logs,
    *,
    robot: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None,
    mapping: Mapping = None,
    about: About = ABOUT,
    in_air: InAir = False,
    plot: Annotated[Path | None, tyro.conf.arg(metavar="HTML", help_behavior_hint="")] = None,
    delay: bool = True,
    json: Json = False,
) -> None:
    """Say what is wrong with logs: clocks, channels, units, signs, joints, IMU; and how late each joint hears its command.

    For example `gapless inspect recording.mcap --robot quadruped`, or
    `gapless inspect motions/chirp_sweep --mapping so101 --robot so101.xml --plot chirp.html`.
    Exits 0 if no error was found, 1 if one was, 2 if a log cannot be read; others are inspected all the same.

    Args:
        robot: A built-in robot or a model file: joint names, ranges and motion are compared with it.
        plot: Draw every signal into this file, which works offline.
        delay: Estimate the delay of each joint (about a second a joint).
    """
    import json as text

    from gapless.errors import BadInput
    from gapless.logs import inspect as inspect_log, load_mapping, read
    from gapless.measure import model_findings

    options.can_write(plot, *options.PAGE)
    known, names = about.stated(), load_mapping(mapping) if mapping else None
    model = known.robot(robot) if robot else None
    paths, results, refused = options.log_paths(logs), [], list[str]()
    for path in paths:
        try:
            log = read(path, names)
            more = model_findings(known.twin(model, log, None, in_air), log) if model else ()
        except BadInput as error:
            if len(paths) == 1:
                raise
            refused.append(str(error))
            options.tell(f"gapless: {error}")
            continue
        result = inspect_log(log, model.ranges if model else None, delay, more)
        results.append(result)
        if not json:
            options.show(result, json)
        if plot:
            several = "" if len(paths) == 1 else f"_{path.name.split('.')[0]}"
            target = plot.with_name(f"{plot.stem}{several}{plot.suffix}")
            result.page(target)
            options.tell(f"drawn into {target}")
    errors = sum(result.errors for result in results)
    if json:
        print(text.dumps({"errors": errors, "logs": [result.json() for result in results], "unreadable": refused}))
    if refused or errors:
        sys.exit(2 if refused else 1)
