"""LeRobot v3 datasets: parquet with `observation.state` and `action` at one frame rate, one log an episode.

A table in parquet that is none of LeRobot's is read by a mapping, as a CSV is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs import parquet_claims
from gapless.logs.assemble import log_of
from gapless.logs.log import Log
from gapless.logs.mapping import Column, File, Mapping
from gapless.plain import read_json

TIME, EPISODE = "timestamp", "episode_index"
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
    if mapping.files:
        file = mapping.files[0].spread(_columns(files[0]))
        return log_of(
            path, "lerobot", [(files[0], file, _episode(place, files, episode, file.sources))], mapping, (), files[1:]
        )
    raw = _episode(place, files, episode, [TIME, *COLUMNS])
    columns = tuple(Column(k, s, _names(features, k) or mapping.joint_names or None) for k, s in COLUMNS.items() if k in raw)
    stated = any(k.split("/")[0] in ("q", "q_cmd") for k in mapping.convert)
    notes = [] if stated else ["q, q_cmd: the file does not state the unit; rad is assumed"]
    return log_of(path, "lerobot", [(files[0], File(TIME, columns), raw)], mapping, notes, files[1:])


def is_dataset(path: Path) -> bool:
    """Whether the columns of a path are LeRobot's, and not those of any table."""
    place = _split(path)[0]
    return place.is_dir() or {TIME, *list(COLUMNS)[:1]} <= {*_columns(place)}


def arrays(path: Path) -> dict[str, np.ndarray]:
    """All columns of numbers of one table, each (n, k)."""
    place, episode = _split(path)
    return _episode(place, [place], episode, _columns(place))


def _episode(place: Path, files: list[Path], episode: int | None, keys: list[str]) -> dict[str, np.ndarray]:
    """The columns of one episode, (n,) or (n, k); rows of other episodes are passed over as they are read."""
    seen: set[int] = set()
    kept: list[dict[str, np.ndarray]] = []
    for path in files:
        for batch in _batches(path, keys):
            index = batch.pop(EPISODE, np.zeros(len(next(iter(batch.values()))))).reshape(-1)
            seen |= set(np.unique(index[np.isfinite(index)]).astype(int).tolist())
            chosen = episode if episode is not None else min(seen, default=0)
            kept.append({k: v[index == chosen] for k, v in batch.items()})
    if not kept:
        raise BadInput(f"{place}: there are no samples in it")
    span = f"{min(seen)} to {max(seen)}" if seen else "none"
    if episode is None and len(seen) > 1:
        raise BadInput(f"{place}: holds episodes {span}; name one, as in {place}#{min(seen)}")
    if episode is not None and episode not in seen:
        raise BadInput(f"{place}: there is no episode {episode}, only {span}")
    if any({k: v.shape[1] for k, v in b.items()} != {k: v.shape[1] for k, v in kept[0].items()} for b in kept):
        raise BadInput(f"{place}: its vectors are not all of one length")
    return {k: np.concatenate([b[k] for b in kept]) for k in kept[0]}


@contextmanager
def _opened(path: Path, keys: list[str]) -> Iterator[tuple[Any, int, int]]:
    """A parquet file, and how many values and bytes its columns claim to have; damage is refused."""
    with disk.refusing(f"{path}: reading parquet needs pyarrow: pip install 'gapless[logs]'", ImportError):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    damage = pa.ArrowException, OSError, ValueError, OverflowError, MemoryError
    with disk.refusing(f"{path}: damaged parquet", *damage):
        values, unpacked = parquet_claims.claims(disk.regular(path), [EPISODE, *keys])
        with parquet.ParquetFile(path, memory_map=False) as source:
            yield source, values, unpacked


def _columns(path: Path) -> list[str]:
    """The columns of numbers and of times."""
    with _opened(path, []) as (source, _, _):
        return [field.name for field in source.schema_arrow if _is_numbers(field.type)]


def _is_numbers(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if _is_vector(kind) else kind
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _is_vector(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _batches(path: Path, keys: list[str]) -> Iterator[dict[str, np.ndarray]]:
    """The wanted columns of a file, some rows at a time, each (rows, k). The first two keys must be there."""
    size = path.stat().st_size
    held, limit = 0, disk.expansion_limit(size)
    with _opened(path, keys) as (source, values, unpacked):
        present = source.schema_arrow.names
        if missing := [k for k in keys[:2] if k not in present]:
            raise BadInput(
                f"{path}: there is no column {missing[0]!r}, only {', '.join(sorted(present)[:20])}; "
                f"`gapless init {path}` drafts a mapping of a table that is none of LeRobot's"
            )
        wanted = [k for k in dict.fromkeys((EPISODE, *keys)) if k in present]
        claimed = 8 * max(values, len(wanted) * source.metadata.num_rows)
        if max(claimed, unpacked) > limit:
            raise BadInput(f"{path}: {values} values in {source.metadata.num_rows} rows are more than {size} bytes can hold")
        disk.require_memory(path, 2 * claimed)
        for rows in source.iter_batches(1024, columns=wanted, use_threads=False):
            batch = {k: _numbers(path, k, rows.column(k)) for k in wanted}
            held += sum(v.nbytes for v in batch.values())
            if held > limit:
                raise BadInput(f"{path}: unpacks to more than {limit} bytes, {disk.MAX_EXPANSION} times its size")
            yield batch


def _numbers(path: Path, key: str, column: Any) -> np.ndarray:
    """A column of numbers or of vectors of one length. Shape: (rows, k)."""
    import pyarrow as pa

    rows, kind = len(column), column.type
    if not _is_numbers(kind):
        raise BadInput(f"{path}: column {key!r} holds {kind}, not numbers")
    if _is_vector(kind):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if rows == 0 or column.null_count or np.any(lengths != lengths[0]):
            raise BadInput(f"{path}: column {key!r}: its vectors are not all of one length")
        column = column.flatten()
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns")).cast(pa.int64())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).reshape(rows, -1)


def _features(path: Path) -> dict[str, Any]:
    features = read_json(path, 16 << 20).get("features")
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
