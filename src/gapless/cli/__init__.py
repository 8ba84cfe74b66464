"""The command line: one file a command; heavy packages load only when a command runs."""

import errno
import sys
from importlib import import_module

from gapless import __version__
from gapless.cli.typed import parsed
from gapless.errors import BadInput, PhysicsError, unknown

COMMANDS = (
    "robots", "standin", "init", "inspect", "replay", "gap", "fit", "actuator", "delta", "excite", "export", "train", "course",
    "adapt", "check", "certify", "close", "compare", "run",
)  # fmt: skip
"""In the order of the loop; each is a file here with a function of its name, whose first line is its help here."""
DESCRIPTION = "Measure, explain and close the gap between a simulated robot and the real one."


def main(argv: list[str] | None = None) -> None:
    """Run a command. Exits 0 for a pass, 1 for a failure, 2 for bad input, 3 for inconclusive, 130 for Ctrl-C."""
    words = sys.argv[1:] if argv is None else argv
    try:
        if not words or words[0] in ("-h", "--help"):
            print(overview())
        elif words[0] == "--version":
            print(f"gapless {__version__}")
        else:
            _run(words)
        sys.stdout.flush()  # else a full disk shows only once Python ends
    except (BadInput, PhysicsError) as error:
        _end(str(error), 1 if isinstance(error, PhysicsError) else 2)
    except MemoryError as error:
        _end(f"there is not enough memory: {error or 'ask for less'}; take fewer at once, or a stretch of a log (LOG@0:60)", 2)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        where = error.filename2 or error.filename
        if where is None and error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # not about what is written
            raise
        if where is None:
            sys.stdout = None  # what is still in it cannot be written either
        _end(f"{where}: {error.strerror}" if where else f"{error.strerror}: not everything could be written", 2)
    except KeyboardInterrupt as error:
        _end(str(error) or "stopped", 130)


def overview() -> str:
    """All commands in the order of the loop, with the sentence on top of each one's file."""
    modules = {name: import_module(f"gapless.cli.{name}") for name in COMMANDS}
    lines = [f"  {name:<9}{(module.__doc__ or '').strip().partition(': ')[2]}" for name, module in modules.items()]
    more = "gapless COMMAND --help shows its options, gapless --version the version."
    return "\n".join([DESCRIPTION, "", "In the order of the loop:", *lines, "", more])


def _run(words: list[str]) -> None:
    if words[0] not in COMMANDS:
        raise unknown("command", words[0], COMMANDS)
    parsed(words[0], words[1:])()


def _end(sentence: str, code: int) -> None:
    print(f"gapless: {sentence}", file=sys.stderr)
    sys.exit(code)
