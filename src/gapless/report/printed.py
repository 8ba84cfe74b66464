"""Printed: what shows itself in a line where it stands in a list, and as a table where it is printed or in a notebook."""

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from gapless.report.sections import Section

WIDTH = 100  # letters: of what is printed as text, where no terminal says how wide it is
MOST_ROWS = 60  # of a table that describes something


class Printed:
    """Base of what prints well; a dataclass derived from it needs `repr=False`."""

    def described(self) -> Section:
        """What it is, as a title and a table."""
        raise NotImplementedError

    def __rich__(self) -> RenderableType:
        return in_terminal(self.described())

    def __str__(self) -> str:
        console = Console(width=WIDTH, file=io.StringIO(), color_system=None)
        console.print(self)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.described().title}>"

    def _repr_html_(self) -> str:
        """For a notebook."""
        console = Console(width=WIDTH, file=io.StringIO(), record=True, force_jupyter=False)
        console.print(self)
        return console.export_html(inline_styles=True, code_format='<pre style="line-height: 1.3">{code}</pre>')


def in_terminal(section: Section) -> Group:
    """A section's heading and table as a terminal shows them."""
    assert section.table is not None
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, heading in enumerate(section.table.head):
        table.add_column(Text(heading), justify="left" if i < section.table.words else "right", overflow="fold")
    for row in section.table.rows:
        table.add_row(*(Text(cell if isinstance(cell, str) else cell.text) for cell in row))
    return Group(Text(f"\n{section.title}", "bold"), table)


def first_rows(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Rows of a table that describes something, not too many."""
    more = len(rows) - MOST_ROWS
    return list(rows) if more <= 0 else [*rows[:MOST_ROWS], [f"... and {more} more", *[""] * (len(rows[0]) - 1)]]
