"""What was typed: the call that it means, or one sentence that says what is wrong with it."""

import contextlib
import functools
import io
import itertools
import re
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from inspect import getdoc, signature

from gapless.errors import BadInput, unknown

MOST_THREADS = 1024
COUNTS = {"seed": 1 << 32, "threads": MOST_THREADS}
"""Options that several commands share and that are whole numbers from 0."""


def parsed(name: str, words: list[str]) -> Callable[[], None]:
    """The command with what was typed behind it; what is wrong there is one sentence, not the parser's box."""
    import tyro

    command = getattr(import_module(f"gapless.cli.{name}"), name)

    @functools.wraps(command)
    def waiting(*given: object, **named: object) -> Callable[[], None]:
        from gapless.checks import whole  # numpy, which no help needs

        for option in COUNTS.keys() & named.keys():
            whole(named[option], f"--{option}", 0, COUNTS[option])
        return functools.partial(command, *given, **named)

    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            call: Callable[[], None] = tyro.cli(
                waiting, prog=f"gapless {name}", args=words, config=(tyro.conf.OmitArgPrefixes,)
            )
        return call
    except SystemExit as end:
        if not end.code:
            raise  # --help
    raise _refused(name, command, _first_words(box.getvalue()))


def _refused(name: str, command: Callable[..., object], told: str) -> BadInput:
    """The parser's words as a sentence that says what to type."""
    extra = told.partition("Unrecognized options: ")[2].split(", ")
    if wrong := [word for word in extra if word.startswith("--")]:
        return unknown("option", wrong[0].partition("=")[0], _options(command))
    if choice := re.search(r"invalid choice '(.*)' for argument '(\S+)'. Expected one of \((.*)\)", told):
        return unknown(choice[2], choice[1], [word.strip("' ") for word in choice[3].split(",") if "None" not in word])
    if value := re.search(r"Missing value for argument '(\S+)'", told):
        return BadInput(f"{value[1]} takes a value, and none follows it")
    if number := re.match(r"Error parsing (\S+): .*?(INT|int\(\)|FLOAT|float).*?'(.*)'", told):
        kind = "a whole number" if number[2].lower().startswith("int") else "a number"
        return BadInput(f"{number[1]} takes {kind}, not {number[3]!r}")
    if told.startswith("Missing from "):
        example = re.search(r"For\s+example\s+`(gapless .*?)`", getdoc(command) or "", re.DOTALL)
        shown = f", as in `{' '.join(example[1].split())}`" if example else ""
        return BadInput(f"{name} needs {' and '.join(_needed(command, told))}{shown}")
    told = told.replace("Unrecognized options: ", "too many words: ")
    return BadInput(f"{told.rstrip('. ')}; `gapless {name} --help` shows what it takes")


def _needed(command: Callable[..., object], told: str) -> list[str]:
    """What must be given to a command and was not, as its help calls it; a word without an option's name is told first."""
    word = told.partition(": ")[2].partition(" ")[0]
    named = [f"--{p.name}" for p in signature(command).parameters.values() if p.default is p.empty and p.kind is p.KEYWORD_ONLY]
    return [*([] if word.startswith("--") else [word]), *(name for name in named if name in told)]


def _options(command: Callable[..., object]) -> list[str]:
    """The options of a command, as they are typed."""
    from gapless.cli.options import About

    named = [p for p in signature(command).parameters.values() if p.kind is p.KEYWORD_ONLY]
    names = [name for p in named for name in ([f.name for f in fields(About)] if isinstance(p.default, About) else [p.name])]
    return [f"--{name.replace('_', '-')}" for name in names]


def _first_words(box: str) -> str:
    """What a box of the parser says between its title and the next rule, drawn with or without lines and colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│╭╮╰╯ ") for line in plain.splitlines()][1:]
    said = itertools.dropwhile(lambda line: not set(line) - set("─- "), lines)
    return " ".join(itertools.takewhile(lambda line: bool(set(line) - set("─- ")), said))
