"""LeRobot v3 datasets: parquet with `observation.state` and `action` at one frame rate, one log an episode."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gapless.errors import BadInput
from gapless.logs import disk
from gapless.logs.assemble import assemble, finish
from gapless.logs.log import Log
from gapless.logs.mapping import Column, File, Mapping

COLUMNS = {"observation.state": "q", "action": "q_cmd"}


def can_read(path: Path) -> bool:
    """A parquet file, a dataset folder, or either with `#EPISODE` behind it."""
    path = _split(path)[0]
    return path.suffix.lower() == ".parquet" or (path / "meta" / "info.json").is_file()


def read(path: Path, mapping: Mapping) -> Log:
    place, episode = _split(path)
    root = place if place.is_dir() else next((p for p in place.parents if (p / "meta" / "info.json").is_file()), None)
    features: dict[str, Any] = _features(root / "meta" / "info.json") if root else {}
    files = sorted(place.glob("data/**/*.parquet")) if place.is_dir() else [disk.regular(place)]
    found = _episodes(place, files, episode, [f.source for f in mapping.files[0].columns] if mapping.files else [*COLUMNS])
    if mapping.files:
        file = mapping.files[0]
    else:
        columns = []
        for key, signal in COLUMNS.items():
            if key in found:
                names = _names(features, key) or mapping.joint_names or None
                columns.append(Column(key, signal, names))
        file = File("timestamp", tuple(columns), time_unit="s")
    signals, notes = assemble(path, file, found, mapping, "frame")
    if not any(k.split("/")[0] in ("q", "q_cmd") for k in mapping.convert):
        notes.append("q, q_cmd: the file does not say the unit; taken as rad")
    return finish(path, "lerobot", signals, notes, mapping, files)


def _episodes(place: Path, files: list[Path], episode: int | None, keys: list[str]) -> dict[str, np.ndarray]:
    """The columns of one episode, (n,) or (n, k)."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise BadInput(f"{place}: reading parquet needs pyarrow: pip install 'gapless[logs]'") from None
    tables = []
    for path in files:
        try:
            with parquet.ParquetFile(path, memory_map=False) as source:
                meta = source.metadata
                groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
                claimed = sum(8 * g.column(i).num_values for g in groups for i in range(meta.num_columns))
                size = path.stat().st_size
                if max(claimed, meta.num_rows) > disk.expansion_limit(size):
                    raise BadInput(f"{path}: claims {claimed} bytes in {meta.num_rows} rows, too many for {size} bytes")
                disk.require_memory(path, 2 * claimed)
                present = set(source.schema_arrow.names)
                missing = [k for k in ("timestamp", *keys[:1]) if k not in present]
                if missing:
                    raise BadInput(f"{path}: there is no column {missing[0]!r}, only {', '.join(sorted(present)[:20])}")
                wanted = [k for k in ("timestamp", "episode_index", *keys) if k in present]
                table = source.read(columns=wanted, use_threads=False)
            numbers = {k: _numbers(path, k, table[k]) for k in wanted}
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            if isinstance(error, BadInput):
                raise
            first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise BadInput(f"{path}: damaged parquet ({first})") from None
        tables.append(numbers)
    if not tables:
        raise BadInput(f"{place}: there is no parquet file under data/")
    joined = {k: np.concatenate([t[k] for t in tables]) for k in tables[0] if all(k in t for t in tables)}
    index = joined.pop("episode_index", np.zeros(len(joined["timestamp"]))).reshape(-1)
    present_episodes = np.unique(index[np.isfinite(index)]).astype(int)
    if episode is None and len(present_episodes) != 1:
        span = f"{present_episodes[0]} to {present_episodes[-1]}" if len(present_episodes) else "none"
        raise BadInput(
            f"{place}: holds episodes {span}; name one, as in {place}#{present_episodes[0] if len(present_episodes) else 0}"
        )
    chosen = present_episodes[0] if episode is None else episode
    if chosen not in present_episodes:
        raise BadInput(f"{place}: there is no episode {chosen}, only {present_episodes[0]} to {present_episodes[-1]}")
    return {k: v[index == chosen] for k, v in joined.items()}


def _numbers(path: Path, key: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    rows = len(column)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        flat = column.flatten()
        if column.null_count or rows == 0 or len(flat) % rows:
            raise BadInput(f"{path}: column {key!r}: its vectors are not all of one length")
        if not pa.types.is_fixed_size_list(column.type) and np.any(np.diff(column.offsets.to_numpy()) != len(flat) // rows):
            raise BadInput(f"{path}: column {key!r}: its vectors are not all of one length")
        column = flat
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise BadInput(f"{path}: column {key!r} holds {column.type}, not numbers")
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values.reshape(rows, -1)


def _features(path: Path) -> dict[str, Any]:
    try:
        info = json.loads(disk.text(path, 16 << 20))
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, BadInput) else BadInput(f"{path}: not JSON ({error})") from None
    features = info.get("features") if isinstance(info, dict) else None
    return features if isinstance(features, dict) else {}


def _names(features: dict[str, Any], key: str) -> tuple[str, ...] | None:
    """Joint names of a feature, without LeRobot's ending for positions."""
    feature = features.get(key)
    names = feature.get("names") if isinstance(feature, dict) else None
    names = next(iter(names.values()), None) if isinstance(names, dict) else names
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        return None
    return tuple(n.removesuffix(".pos") for n in names)


def _split(path: Path) -> tuple[Path, int | None]:
    name, mark, number = str(path).rpartition("#")
    return (Path(name), int(number)) if mark and number.isdecimal() and not path.exists() else (path, None)
