"""Reports: what a person would rather look at than read, on one page or in a terminal; and what every result can do."""

from gapless.report.printed import Printed, first_rows, in_terminal
from gapless.report.result import Result, notes
from gapless.report.sections import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    Cell,
    Film,
    Plot,
    Section,
    Table,
    Verdict,
    dots,
    line,
)
from gapless.report.words import few, known, literal, percent, short, shown, size, span
