"""`gapless export`: a fit as the settings that a training framework takes."""

from pathlib import Path
from typing import Annotated

import tyro


def export(
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    *,
    to: Annotated[str, tyro.conf.arg(metavar="mjlab|isaaclab|playground")],
) -> None:
    """Print the actuator and randomisation settings that a training framework takes, from a fit.

    For example `gapless export fitted --to mjlab > drives.py`. Values are the fitted ones, ranges their 90 % intervals;
    comments say what the framework cannot express.

    Args:
        folder: What `gapless fit` made: twin.xml, belief.json and fit.json.
        to: The framework: mjlab, isaaclab (Isaac Lab) or playground (MuJoCo Playground).
    """
    import sys

    from gapless.twin import export_settings, read_settings

    model, belief, summary = read_settings(folder)
    print(export_settings(to, model, belief, summary), end="")
    if summary.get("against"):
        print("gapless: this fit says of itself that it should not be used", file=sys.stderr)
    elif summary.get("suspicions"):
        print("gapless: this fit says of itself that its numbers should not be trusted", file=sys.stderr)
