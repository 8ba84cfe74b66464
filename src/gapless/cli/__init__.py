"""The command line: one file a command; heavy packages load only when a command runs."""

import sys
from importlib import import_module

from gapless.errors import BadInput, PhysicsError

COMMANDS = ("robots", "init", "inspect", "replay", "gap", "fit", "excite", "export", "standin", "train", "course", "check")
"""In the order of `gapless --help`; each is a file here with a function of its name."""


def main(argv: list[str] | None = None) -> None:
    """Run a command. Exits 0 for a pass, 1 for a failure, 2 for bad input, 3 for inconclusive, 130 for Ctrl-C."""
    import tyro

    app = tyro.extras.SubcommandApp()
    for name in COMMANDS:
        app.command(getattr(import_module(f"gapless.cli.{name}"), name))
    try:
        app.cli(
            prog="gapless",
            description="Measure, explain and close the gap between a simulated robot and the real one.",
            args=argv,
            config=(tyro.conf.OmitArgPrefixes,),
        )
    except (BadInput, PhysicsError) as error:
        print(f"gapless: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, PhysicsError) else 2)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.filename is None:  # not about a file that was named
            raise
        print(f"gapless: {error.filename2 or error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("gapless: stopped", file=sys.stderr)
        sys.exit(130)
