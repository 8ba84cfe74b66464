"""`gapless init`: draft the mapping of a log, with the reason for every guess."""

from pathlib import Path
from typing import Annotated

import tyro

from gapless.cli import options
from gapless.cli.options import ABOUT, About, Logs


def init(
    logs: Logs,
    *,
    robot: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None,
    about: About = ABOUT,
    out: Annotated[Path | None, tyro.conf.arg(metavar="TOML", help_behavior_hint="")] = None,
) -> None:
    """Draft the mapping of a log: which column or topic is which signal of which joint, and in which unit.

    For example `gapless init run.csv --robot arm.xml`, `gapless init lowcmd.csv lowstate.csv --robot go2.xml --out go2.toml`,
    or `gapless init bag/ --robot ur5e.xml`. Every line of the draft says why; correct what is wrong, then inspect the log.

    Args:
        logs: One log: its file or folder, or the files of one run.
        robot: A built-in robot or a model file: joints are matched with its names, positions with its ranges.
        out: The mapping; LOG.toml beside the log unless given.
    """
    from gapless.errors import BadInput
    from gapless.files import atomic
    from gapless.logs import draft

    if not logs:
        raise BadInput("name a log, such as `gapless init run.csv --robot arm.xml`")
    target = out or logs[0].with_name(f"{logs[0].name.split('.')[0]}.toml")
    options.can_write(target, "a mapping", ".toml")
    if target.exists():
        raise BadInput(f"{target} is there already: delete it, or name another file with --out")
    model = about.stated().robot(robot) if robot else None
    ranges = {j: model.ranges[j] for j in model.joints or model.ranges} if model else None
    made = draft(logs, ranges)
    with atomic(target) as part:
        part.write_text(made.text)
    print(made.text, end="")
    signals = ", ".join(made.log.signals)
    options.tell(f"written to {target}: {made.log.duration:.1f} s of {signals} of {len(made.log.joints)} joints")
    named = f" --robot {robot}" if robot else ""
    options.tell(f"check its lines, then: gapless inspect {logs[0]} --mapping {target}{named}")
