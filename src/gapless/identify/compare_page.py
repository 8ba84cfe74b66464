"""The report of a comparison: what moved between two fits, what may have changed, and what neither recording shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType

from gapless.identify.page import interval_axes, interval_dots
from gapless.report import (
    BLUE,
    ORANGE,
    Cell,
    Plot,
    Section,
    Table,
    Verdict,
    few,
    in_terminal,
    known,
    notes,
    percent,
    short,
    size,
)

if TYPE_CHECKING:
    from gapless.identify.compare import Change, Comparison

IN_TERMINAL = 12  # rows
ROUGH = 0.3  # standard deviation of the logarithm of a ratio that is not worth showing
COLOURS = {"A": BLUE, "B": ORANGE}


def verdict(comparison: Comparison) -> Verdict:
    """How many numbers moved beside what chance gives, and the first suspicion."""
    n, k = comparison.determined, comparison.moved
    if not n:
        text = "No number is determined by both recordings, so they cannot be compared: record richer motion (gapless excite)."
        return Verdict(text, good=False)
    text = f"{k} of the {n} numbers that both recordings determine moved ({percent(k / n)}; chance alone gives 10 %)"
    if comparison.holds:
        more = "" if comparison.suspicions else ", and a fit to both together is sharper than either"
        few_known = n < len(comparison.parameters) / 2
        holds = f"so far as these {n} of {len(comparison.parameters)} numbers tell, one model" if few_known else "one model"
        good = f"{text}: {holds} holds in both recordings{more}."
        return Verdict(f"{good} But {comparison.suspicions[0]}." if comparison.suspicions else good, not comparison.suspicions)
    if comparison.changed:
        text += f". Taken together, the differences ask for a change of {few(comparison.changed)}"
    return Verdict(f"{text}. A suspicion: {comparison.suspicions[0]}." if comparison.suspicions else f"{text}.", good=False)


def sections(comparison: Comparison) -> Iterator[Section | None]:
    """The page after its verdict."""
    head = ("", "folder", "logs", "seconds", "held-out error")
    sides = {"A": comparison.a, "B": comparison.b}
    rows = [[k, s.name, few(s.logs), f"{s.seconds:.0f}", size(s.heldout, "rad")] for k, s in sides.items()]
    yield Section("What was compared", table=Table(head, rows, words=3))
    if comparison.suspicions:
        text = "These are suspicions: a log shows that a number moved, not why."
        yield Section("What may have changed", [text, *(f"– {s}." for s in comparison.suspicions)])
    yield _moved(comparison, len(comparison.parameters))
    yield _values(comparison.parameters)
    yield _unseen(comparison)
    yield _zeros(comparison)
    if comparison.notes:
        yield Section("Before you rely on it", [f"– {note}." for note in comparison.notes])
    every = Table(
        _HEAD,
        [_row(n, c, comparison.changed) for n, c in comparison.parameters.items()],
        2,
        f"All {len(comparison.parameters)} numbers",
    )
    yield Section(
        "In numbers",
        "What both recordings determine comes first, sorted by how far it moved, in joint standard deviations.",
        every,
    )


def glance(comparison: Comparison) -> Iterable[RenderableType]:
    """What a terminal shows after the verdict."""
    moved = _moved(comparison, IN_TERMINAL)
    silent = [f"{quantity} ({_of(names)}): {shows}" for (quantity, shows), names in _grouped(comparison.unseen).items()]
    return [
        *([f"A is {comparison.a.name}, B is {comparison.b.name}."] if comparison.a.name != "A" else []),
        *([in_terminal(moved)] if moved.table else []),
        *notes("suspicion", [f"{s}." for s in comparison.suspicions]),
        *notes("neither recording shows", [f"{s}." for s in silent]),
        *notes("note", [f"{n}." for n in comparison.notes]),
    ]


_HEAD = ("parameter", "", "A", "B", "unit", "B / A", "apart [sd]")


def _row(name: str, change: Change, changed: Sequence[str]) -> list[str | Cell]:
    moved = "changed" if name in changed else "moved" if change.moved else ""
    shown = {(True, True): moved, (True, False): "only A shows it", (False, True): "only B shows it"}
    remark = shown.get((change.a.identified, change.b.identified), "neither shows it")
    bound = [side for side, p in (("A", change.a), ("B", change.b)) if p.at_bound]
    remark += f"{', ' * bool(remark)}at a bound in {' and '.join(bound)}" if bound else ""
    ratio = short(change.ratio) if change.ratio_error < ROUGH else "–"
    values = (short(change.a.value), short(change.b.value), change.unit or "–", ratio)
    tint = min(abs(change.difference) / 10, 1.0) if change.moved else 0.0
    return [name, remark, *values, Cell(f"{change.difference:+.1f}", tint)]


def _moved(comparison: Comparison, most: int) -> Section:
    """The table of what moved, at most so many rows of it."""
    changed = comparison.changed
    rows = [_row(n, c, changed) for n, c in comparison.parameters.items() if c.moved or n in changed]
    more = len(rows) - most
    rows = rows[:most] + [[f"{more} more", "", "", "", "", "", ""]] * (more > 0)
    text = "Moved: both recordings determine it, and it differs by more than 1.645 joint standard deviations. Changed: all "
    text += (
        "differences together are explained if these changed and no others, as a fit knows some combinations of numbers better "
    )
    text += "than each of them."
    return Section("What moved", text, Table(_HEAD, rows, words=2)) if rows else Section("What moved", "Nothing.")


def _values(changes: Mapping[str, Change]) -> Section:
    """A plot for each quantity: both values and their intervals."""
    groups: dict[str, dict[str, Change]] = {}
    for name, change in changes.items():
        groups.setdefault(change.quantity, {})[name.partition("/")[2] or name] = change
    plots = [_intervals(quantity, dict(sorted(group.items()))) for quantity, group in groups.items()]
    return Section("Both fits", "Bars are 90 % intervals.", legend=list(COLOURS.items()), plots=plots, narrow=True)


def _intervals(quantity: str, group: Mapping[str, Change]) -> Plot:
    data, view = [], []
    for side, step in (("A", -0.15), ("B", 0.15)):
        found = [(i, c.a if side == "A" else c.b) for i, c in enumerate(group.values())]
        shown = [(i + step, p) for i, p in found if known(p.value + p.low + p.high)]
        data.append(interval_dots(shown, COLOURS[side], side))
        # intervals that say nothing may leave the view
        view += [x for _, p in shown for x in (p.value, *((p.low, p.high) if p.identified else ()))]
    layout = interval_axes(view, next(iter(group.values())).unit, group)
    return Plot(quantity, data, layout, height=70 + 22 * len(group))


def _unseen(comparison: Comparison) -> Section | None:
    rows = [[quantity, _of(names, 12), shows] for (quantity, shows), names in _grouped(comparison.unseen).items()]
    text = "In both fits the interval is as wide as what was known before, so these numbers had no effect on either motion."
    table = Table(("quantity", "of", "what would show it"), rows, words=3)
    return Section("What neither recording shows", text, table) if rows else None


def _zeros(comparison: Comparison) -> Section | None:
    rows = [[joint, *(size(z, "rad") for z in (a, b, b - a))] for joint, (a, b) in comparison.zeros.items()]
    text = (
        "Mean over the logs of each fit. A fit keeps no interval for them: only their scatter between logs tells what is news."
    )
    return Section("Encoder zeros of single logs", text, Table(("joint", "A", "B", "moved"), rows)) if rows else None


def _grouped(unseen: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """Quantity and what shows it, to the places that have it."""
    out: dict[tuple[str, str], list[str]] = {}
    for name, shows in unseen.items():
        quantity, _, place = name.partition("/")
        out.setdefault((quantity, shows), []).append(place)
    return out


def _of(places: list[str], most: int = 3) -> str:
    return few(["all joints" if place == "*" else place or "the robot" for place in places], most)
