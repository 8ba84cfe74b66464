"""What a long command is doing: a line that moves in a terminal, with the time left; in a file or a pipe, a line a stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Tell(Protocol):
    """Says what is done now, and how many seconds are left where that is known."""

    def __call__(self, text: str, left: float | None = None) -> None: ...


@contextmanager
def stages() -> Iterator[Tell]:
    """Something that tells what is done now on stderr."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console, said = Console(stderr=True, highlight=False), [""]
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn("{task.fields[left]}")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None, left="")

        def tell(text: str, left: float | None = None) -> None:
            about = f"about {max(round(left, -1 if left > 20 else 0), 1):.0f} s left" if left else ""
            progress.update(task, description=text, left=about)
            if not console.is_terminal and text != said[0]:
                said[0] = text
                console.print(f"{text}{f' ({about})' if about else ''}", markup=False, soft_wrap=True)

        yield tell
