"""The head of a table as people write it: remarks, a header, a row of units, the delimiter, and the decimal sign."""

import csv
from dataclasses import dataclass
from pathlib import Path

from gapless import files as disk
from gapless.errors import BadInput

DELIMITERS = ";\t,"
"""In the order in which they are believed: where a comma is the decimal sign, another one is between the cells."""
REMARKS = ("#", "%", "//")
"""What a line of remarks begins with."""
CONTROL = frozenset(range(9)) | frozenset(range(14, 32))
"""Bytes that no table in text has."""
MISSING = {"na", "n/a", "null", "none", "#n/a", "#nv"}
"""Words for a value that is missing."""
MAX_LINE = 1 << 20
"""Bytes; a longer line is no log."""


@dataclass(frozen=True)
class Head:
    """What comes before the numbers."""

    names: list[str]
    delimiter: str
    blanks: bool
    """Whether cells are apart by blanks; `plain` makes tabs of them."""
    ends: bool
    """Whether every line ends with a delimiter too many."""
    units: list[str]
    """Of a row of units, else of none."""
    remarks: list[str]
    """Lines of remarks, without their mark."""
    size: int
    """Bytes before the numbers."""
    lines: int
    """Lines before the numbers."""

    def plain(self, block: bytes) -> bytes:
        """Lines in the usual form: a delimiter between cells, a point in numbers."""
        if self.blanks:
            block = b"\n".join(b"\t".join(line.split()) for line in block.split(b"\n"))
        if self.delimiter != "," and b"," in block and b"[" not in block:
            block = block.replace(b",", b".")
        if self.ends:
            mark = self.delimiter.encode()
            block = block.replace(mark + b"\r\n", b"\n").replace(mark + b"\n", b"\n")
        return block


def head_of(path: Path, piece: bytes) -> Head:
    """The head of a table from its first whole lines."""
    remarks, table, sizes, lines = list[str](), list[tuple[int, str]](), list[int](), piece.split(b"\n")
    total = 0
    for number, line in enumerate(lines[:1000]):
        if len(line) > MAX_LINE:
            raise BadInput(f"{path}: line {number + 1} is longer than {MAX_LINE} bytes: this is no table of numbers")
        text = _text(path, number + 1, line).strip("\r\n ")
        sizes.append(total)
        total += len(line) + 1
        if text.startswith(REMARKS):
            if not table:
                remarks.append(text.lstrip("#%/ "))
        elif text:
            table.append((number, text))
        if len(table) > 60:
            break
    sizes.append(total)
    if not table:
        names = cells(remarks[-1], delimiter_of(remarks[-1:])) if remarks else []
        return Head(names, delimiter_of(remarks[-1:]), False, False, [], remarks[:-1], len(piece), len(lines) - 1)
    with disk.refusing(f"{path}: line {table[0][0] + 1}", csv.Error):
        return _shaped(table, remarks, sizes)


def _text(path: Path, number: int, line: bytes) -> str:
    """A line in UTF-8, else in Windows' western code page, in which Excel saves tables; bytes that no text has are refused."""
    if b"\0" in line:
        raise BadInput(f"{path}: line {number}: has bytes of zero, as in UTF-16 without its mark: save the table as UTF-8 CSV")
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        sentence = f"{path}: line {number}, byte {error.start}: not text in UTF-8 (save the table as UTF-8 CSV)"
    with disk.refusing(sentence, UnicodeDecodeError):
        if not CONTROL.isdisjoint(line):
            raise BadInput(sentence)
        return line.decode("cp1252")


def _shaped(table: list[tuple[int, str]], remarks: list[str], sizes: list[int]) -> Head:
    texts = [text for _, text in table]
    while len(texts) > 2 and len(cells(texts[0], delimiter_of(texts[1:3]))) == 1 < len(
        cells(texts[1], delimiter_of(texts[1:3]))
    ):
        remarks.append(texts.pop(0))  # a remark without a mark
        table = table[1:]
    delimiter = delimiter_of(texts[:2])
    blanks = delimiter == " "
    first, *more = [cells(text, delimiter) for text in texts[:4]]
    named = cells(remarks[-1], delimiter) if remarks else []
    units: list[str] = []
    if len(named) == len(first) > 1 and any(map(is_number, first)) and not any(map(is_number, named)):
        names, begin = named, 0  # the last remark is the header, as numpy.savetxt writes it
        remarks = remarks[:-1]
    elif first and all(map(is_number, first)):
        names, begin = [str(i) for i in range(len(first))], 0
    else:
        names, begin = first, 1
        words = len(more) > 1 and len(more[0]) == len(first) and any(more[0]) and not any(map(is_number, more[0]))
        if words and any(map(is_number, more[1])):
            units, begin = more[0], 2
    row = ([first, *more])[begin] if begin <= len(more) else []
    ends = len(row) == len(names) + 1 and not row[-1]
    place = table[begin][0] if begin < len(table) else table[-1][0] + 1
    return Head(names, "\t" if blanks else delimiter, blanks, ends, units, remarks, sizes[place], place)


def delimiter_of(texts: list[str]) -> str:
    """What is between the cells of a header and the line after it: what gives both as many, else what is most frequent."""
    for delimiter in (*DELIMITERS, " "):
        counts = {len(cells(text, delimiter)) for text in texts if text}
        if len(counts) == 1 and counts.pop() > 1:
            return delimiter
    text = texts[0] if texts else ""
    best = max(DELIMITERS[::-1], key=text.count)
    return best if best in text or not text.split()[1:] else " "


def cells(text: str, delimiter: str) -> list[str]:
    """The cells of a line, without blanks around them."""
    if delimiter == " ":
        return text.split()
    return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a point or a comma, or a list of them, or says that it is missing."""
    if cell.strip().lower() in MISSING:
        return True
    listed = cell.lstrip().startswith("[")
    words = (cell.strip(" []").split(",")[0] or "nan").split()[0] if listed else cell.replace(",", ".", 1)
    try:
        float(words)
    except ValueError:
        return False
    return True
