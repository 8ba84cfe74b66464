"""LeRobot v3 datasets: parquet with `observation.state` and `action` at one frame rate, one log an episode."""

from collections.abc import Iterator
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
    raw = _episode(place, files, episode, [f.source for f in mapping.files[0].columns] if mapping.files else [*COLUMNS])
    columns = tuple(Column(k, s, _names(features, k) or mapping.joint_names or None) for k, s in COLUMNS.items() if k in raw)
    file = mapping.files[0] if mapping.files else File("timestamp", columns)
    stated = any(k.split("/")[0] in ("q", "q_cmd") for k in mapping.convert)
    notes = [] if stated else ["q, q_cmd: the file does not state the unit; rad is assumed"]
    return log_of(path, "lerobot", [(files[0], file, raw)], mapping, notes, files[1:])


def _episode(place: Path, files: list[Path], episode: int | None, keys: list[str]) -> dict[str, np.ndarray]:
    """The columns of one episode, (n,) or (n, k); rows of other episodes are passed over as they are read."""
    seen: set[int] = set()
    kept: list[dict[str, np.ndarray]] = []
    for path in files:
        for batch in _batches(path, keys):
            index = batch.pop("episode_index", np.zeros(len(batch["timestamp"]))).reshape(-1)
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


def _batches(path: Path, keys: list[str]) -> Iterator[dict[str, np.ndarray]]:
    """The wanted columns of a file, some rows at a time, each (rows, k)."""
    with disk.refusing(f"{path}: reading parquet needs pyarrow: pip install 'gapless[logs]'", ImportError):
        import pyarrow as pa
        import pyarrow.parquet as parquet
    size = path.stat().st_size
    held, limit = 0, disk.expansion_limit(size)
    damage = pa.ArrowException, OSError, ValueError, OverflowError, MemoryError
    with disk.refusing(f"{path}: damaged parquet", *damage):
        values, unpacked = parquet_claims.claims(path, ["timestamp", "episode_index", *keys])
        with parquet.ParquetFile(path, memory_map=False) as source:
            present = source.schema_arrow.names
            missing = [k for k in ("timestamp", *keys[:1]) if k not in present]
            if missing:
                raise BadInput(
                    f"{path}: there is no column {missing[0]!r}, which LeRobot's tables have, only "
                    f"{', '.join(sorted(present)[:20])}; save other tables as CSV"
                )
            wanted = [k for k in ("timestamp", "episode_index", *keys) if k in present]
            claimed = 8 * max(values, len(wanted) * source.metadata.num_rows)
            if max(claimed, unpacked) > limit:
                raise BadInput(
                    f"{path}: {values} values in {source.metadata.num_rows} rows are more than {size} bytes can hold"
                )
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
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if rows == 0 or column.null_count or np.any(lengths != lengths[0]):
            raise BadInput(f"{path}: column {key!r}: its vectors are not all of one length")
        column = column.flatten()
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise BadInput(f"{path}: column {key!r} holds {column.type}, not numbers")
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
