"""Pages and plots: what a person would rather look at than read."""

from gapless.report.page import BLUE, GREY, ORANGE, RED, Cell, Plot, Section, Table, Verdict, dots, line, write
from gapless.report.words import flat, known, literal, percent, short, shown, size

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "RED",
    "Cell",
    "Plot",
    "Section",
    "Table",
    "Verdict",
    "dots",
    "flat",
    "known",
    "line",
    "literal",
    "percent",
    "short",
    "shown",
    "size",
    "write",
]
