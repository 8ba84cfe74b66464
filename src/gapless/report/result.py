"""Result: what every result can do. It prints itself, makes its page, saves itself to a folder and loads again.

A result is a frozen dataclass. Its JSON has its fields, less those that are marked `NOT_SAVED`.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from gapless.errors import BadInput
from gapless.files import reason
from gapless.plain import plain, read_json, typed, write_json
from gapless.report.printed import Printed
from gapless.report.sections import Section, Verdict, write

PAGE = "report.html"


class Result(Printed):
    """Base of all results."""

    NAME: str
    """Of the JSON file in a saved folder, without its ending."""

    PAGE: Any
    """The module that has `verdict`, `sections` and `glance` of such results, for those that do not have them themselves."""

    seconds_used: float
    seconds_given: float
    """How much of the logs was used, and how long they last, where a result is from logs [s]."""

    @property
    def title(self) -> str:
        """Of the page."""
        return f"{self.NAME.capitalize()} of {getattr(self, 'robot', '') or 'a robot'}"

    @property
    def used(self) -> str:
        """How much of the logs it is from, in words."""
        return f"{self.seconds_used:.0f} s of {self.seconds_given:.0f} s of logs"

    def verdict(self) -> Verdict:
        """What a reader takes away, in a sentence or two."""
        return self.PAGE.verdict(self)

    def sections(self) -> Iterable[Section | None]:
        """Of the page, after the verdict."""
        return self.PAGE.sections(self)

    def glance(self) -> Iterable[RenderableType]:
        """What a terminal shows after the verdict."""
        return self.PAGE.glance(self)

    def json(self) -> dict[str, Any]:
        """The result as JSON has it: what `--json` prints and the file holds."""
        return {"verdict": self.verdict().text, **plain(self)}

    def page(self, path: str | os.PathLike[str]) -> None:
        """Write the result as one HTML file that works offline."""
        write(path, self.title, self.verdict(), [s for s in self.sections() if s])

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write every file of the result into a folder, which is made where there is none."""
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder}: not a folder, so no results can be saved there")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{self.NAME}.json", self.json())
        self.page(folder / PAGE)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """What `save` wrote; fields that JSON leaves out are empty. The folder may come from anywhere."""
        return cls._read(Path(folder))

    @classmethod
    def _read(cls, folder: Path, **given: Any) -> Self:
        path = folder / f"{cls.NAME}.json"
        try:
            return typed(cls, read_json(path), **given)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            text = reason(error)
            raise BadInput(text if str(path) in text else f"{path}: not a saved {cls.__name__} ({text})") from None

    def __rich__(self) -> RenderableType:
        verdict = self.verdict()
        colour = "green" if verdict.good else "yellow"
        return Group(Panel(Text(verdict.text), border_style=colour, title=self.NAME, title_align="left"), *self.glance())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict().text}>"


def notes(label: str, sentences: Sequence[str], style: str = "yellow") -> list[Text]:
    """Sentences for a terminal, each behind a coloured word."""
    return [Text.assemble((label, style), f" {sentence}") for sentence in sentences]
