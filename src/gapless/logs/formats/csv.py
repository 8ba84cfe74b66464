"""CSV with a mapping (TOML) that says what each column is; written with its mapping beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs import mapping as mappings, table
from gapless.logs.assemble import log_of
from gapless.logs.log import Log, by_clock
from gapless.logs.mapping import Mapping

ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt", ".txt.gz")


def can_read(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS)


def read(path: Path, mapping: Mapping) -> Log:
    """`path` is the file, or what the files of the mapping have in common before their suffixes."""
    if not mapping.files:
        beside = beside_of(path)
        if not beside.is_file():
            raise BadInput(
                f"{path}: a CSV needs a mapping that names its columns: `gapless init {path}` drafts one at {beside}; or "
                f"give one with --mapping ({', '.join(mappings.built_in())} or a TOML file)"
            )
        mapping = mappings.load(beside)
    ending = next((f.suffix for f in mapping.files if f.suffix and str(path).endswith(f.suffix)), "")
    stem = str(path).removesuffix(ending)
    parts, notes = [], []
    for file in mapping.files:
        name = Path(stem + file.suffix) if file.suffix else path
        names = table.header(name)
        with disk.within(name):
            file = file.spread(names)
        left = [h for h in names if h not in file.sources]
        notes += [f"{name.name}: ignored columns: {', '.join(left)}"] if left else []
        parts.append((name, file, table.read(name, file.sources)))
    return log_of(path, "csv", parts, mapping, notes)


def write(log: Log, path: Path) -> None:
    """One CSV a clock (log.csv, log.1.csv ...), and log.toml that maps them back. Every bit of every number survives."""
    stem = str(path)[: -len(".csv")]
    lines = [f"about = {_toml('written by gapless')}", f"notes = {_toml(list(log.provenance.notes))}"]
    lines += ["[meta]"] + [f"{_toml(k)} = {_toml(v)}" for k, v in log.meta.items()]
    for number, signals in enumerate(by_clock(log)):
        suffix = f".{number}.csv" if number else ".csv"
        lines += ["[[file]]", f"suffix = {_toml(suffix)}", 'time = "time"']
        columns = {"time": signals[0].time}
        if signals[0].host_time is not None:
            lines.append('host_time = "host_time"')
            columns["host_time"] = signals[0].host_time
        lines.append("[file.columns]")
        for signal in signals:
            for column, values in zip(signal.columns, signal.values.T, strict=True):
                columns[name := f"{signal.name}/{column}"] = values
                lines.append(f"{_toml(name)} = {{ signal = {_toml(signal.name)}, joint = {_toml(column)} }}")
        with disk.atomic(Path(stem + suffix)) as temporary, temporary.open("w", newline="") as file:
            file.write(",".join(_quoted(n) for n in columns) + "\n")
            rows = np.column_stack(list(columns.values()))
            for start in range(0, len(rows), 4096):
                block = rows[start : start + 4096].tolist()
                file.write("".join(",".join(map(repr, row)) + "\n" for row in block))
    with disk.atomic(Path(stem + ".toml")) as temporary:
        temporary.write_text("\n".join(lines) + "\n")


def beside_of(path: Path) -> Path:
    """Where the mapping of a CSV is looked for: log.csv.gz -> log.toml."""
    ending = next((e for e in ENDINGS if path.name.lower().endswith(e)), "")
    return path.with_name(path.name[: len(path.name) - len(ending)] + ".toml")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n;') else name


def _toml(value: Any) -> str:
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float | np.integer | np.floating):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    raise BadInput(f"meta holds {value!r}, which no log format can keep; use numbers, text, lists and tables")
