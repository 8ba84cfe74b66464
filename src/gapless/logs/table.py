"""Numbers out of delimited text, a block at a time, with the line and column of what is not a number."""

import codecs
import csv
import warnings
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput, must_exist
from gapless.logs.table_head import MAX_LINE, MISSING, REMARKS, Head, head_of, is_number

SKIP = b'"[] \r'
"""Bytes around numbers: quotes and brackets of vectors ("[1, 2]"), blanks."""


def read(path: Path, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """The named columns of a CSV file (gzip too), each (n, k): k is 1, or the length of a vector "[1, 2]".

    Without a header line the columns are called 0, 1, 2 ... An empty cell is NaN. Remarks (#, %, //) and a row of units are
    passed over; a comma is the decimal sign where another one is between the cells.
    """
    pieces = _whole_lines(path)
    piece = next(pieces, b"")
    top = head_of(path, piece)
    names, delimiter, start_line = top.names, top.delimiter, top.lines + 1
    with disk.within(f"{path}: line {max(top.lines, 1)}"):
        must_exist("column", columns, names)
    pieces = (top.plain(block) for block in chain([piece[top.size :]], pieces))
    body = next(pieces, b"") or next(pieces, b"")
    reader = csv.reader(_lines(body), delimiter=delimiter)
    first = next((row for row in reader if row and not row[0].lstrip().startswith(REMARKS)), None)
    if first is None:
        raise BadInput(f"{path}: line {start_line}: there are no samples after the header")
    widths = [max(1, cell.count(",") + 1) if cell.lstrip().startswith("[") else 1 for cell in first]
    if len(first) != len(names):
        raise BadInput(f"{path}: line {start_line}: {len(first)} cells, but the header has {len(names)}")
    starts = np.concatenate([[0], np.cumsum(widths)])
    cells = {name: slice(starts[names.index(name)], starts[names.index(name) + 1]) for name in columns}
    # A column of text that never changes ("CONTROL") would send every block down the slow path.
    words = [c.encode() for c, h in zip(first, names, strict=True) if h not in columns and not is_number(c) and c]
    cells_by_name = {name: array("d") for name in columns}
    size = path.stat().st_size
    line, seen = start_line, 0
    for block in chain([body], pieces):
        rows = _quick(block, delimiter, int(starts[-1]), words)
        if rows is None:
            rows = _careful(path, block, delimiter, names, widths, columns, line)
        for name, where in cells.items():
            cells_by_name[name].frombytes(np.ascontiguousarray(rows[:, where]).tobytes())
        line, seen = line + block.count(b"\n"), seen + len(block)
        held = sum(len(a) for a in cells_by_name.values()) * 8
        disk.require_memory(path, int(held * max(0.0, size / max(seen, 1) - 1)))
    return {name: np.frombuffer(a).reshape(-1, cells[name].stop - cells[name].start) for name, a in cells_by_name.items()}


def head(path: Path) -> Head:
    """What comes before the numbers of a CSV file."""
    return head_of(path, next(_whole_lines(path, 1 << 14), b""))


def first_row(path: Path) -> list[str]:
    """The cells of the first line of numbers."""
    piece = b"".join(islice(_whole_lines(path, 1 << 14), 2))  # the last line may be a piece of its own
    top = head_of(path, piece)
    reader = csv.reader(_lines(top.plain(piece[top.size :])), delimiter=top.delimiter)
    return next(([cell.strip() for cell in row] for row in reader if row and not row[0].lstrip().startswith(REMARKS)), [])


def header(path: Path) -> list[str]:
    """The column names of a CSV file."""
    return head(path).names


def _whole_lines(path: Path, length: int = disk.BLOCK) -> Iterator[bytes]:
    """The file in pieces that end at the end of a line."""
    rest = b""
    for block in _utf8(path, disk.blocks(path, length)):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
        if len(rest) > MAX_LINE:
            raise BadInput(f"{path}: a line is longer than {MAX_LINE} bytes: this is no table of numbers")
    if rest:
        yield rest + b"\n"


def _utf8(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of a file; where it begins with the mark of UTF-16, in which Excel saves tables, in UTF-8."""
    first = next(blocks, b"")
    if not first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from chain([first], blocks)
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    with disk.refusing(f"{path}: not text in UTF-16, although it begins like it: save the table as UTF-8 CSV", UnicodeError):
        for block in chain([first], blocks):
            yield decoder.decode(block).encode()
        decoder.decode(b"", True)


def _lines(body: bytes) -> Iterator[str]:
    start = 0
    while start < len(body):
        end = body.find(b"\n", start) + 1 or len(body)
        yield body[start:end].decode("latin-1").replace("\0", "\ufffd")
        start = end


def _quick(body: bytes, delimiter: str, width: int, words: list[bytes]) -> np.ndarray | None:
    """All cells as numbers, (rows, width); None where the text is not that regular."""
    for word in words:
        body = body.replace(word + delimiter.encode(), b"0" + delimiter.encode())
    if delimiter == ",":
        marks = np.frombuffer(body, np.uint8)
        ends = np.flatnonzero(marks == 10)
        commas = np.searchsorted(np.flatnonzero(marks == 44), ends)
        if len(ends) == 0 or np.any(np.diff(commas, prepend=0) != width - 1):
            return None
    elif b"," in body:
        return None
    numbers = body.translate(bytes.maketrans(b"\n" + delimiter.encode(), b",,"), SKIP)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's way to say that it stopped early
        try:
            flat = np.fromstring(numbers.decode("ascii").rstrip(","), sep=",")
        except ValueError:
            return None
    rows = body.count(b"\n")
    return flat.reshape(rows, width) if flat.size == rows * width else None


def _careful(
    path: Path, body: bytes, delimiter: str, header: list[str], widths: list[int], columns: Sequence[str], line: int
) -> np.ndarray:
    """The same cell by cell: empty cells are NaN, text in columns that nobody asked for is passed over."""
    rows: list[list[float]] = []
    reader = csv.reader(_lines(body), delimiter=delimiter)
    try:
        for row in reader:
            place = f"{path}: line {line + reader.line_num - 1}"
            if not row or row[0].lstrip().startswith(REMARKS):
                continue
            if len(row) != len(header):
                raise BadInput(f"{place}: {len(row)} cells, but the header has {len(header)}")
            rows.append([])
            for name, width, cell in zip(header, widths, row, strict=True):
                parts = cell.strip(' "[]\r').split(",") if width > 1 else [cell.strip(' "\r')]
                if name in columns and len(parts) != width:
                    raise BadInput(f"{place}, column {name!r}: {len(parts)} values, but the first line has {width}")
                rows[-1] += [_number(p, place, name) for p in parts] if name in columns else [np.nan] * width
    except csv.Error as error:
        raise BadInput(f"{path}: line {line + reader.line_num - 1}: {error}") from None
    return np.array(rows, float).reshape(len(rows), sum(widths))


def _number(cell: str, place: str, name: str) -> float:
    try:
        return float(cell) if cell.strip() and cell.strip().lower() not in MISSING else np.nan
    except ValueError:
        raise BadInput(f"{place}, column {name!r}: {cell[:40]!r} is not a number") from None
