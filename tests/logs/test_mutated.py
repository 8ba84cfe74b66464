"""Damaged and hostile files load or end in one clear sentence: no crash, no hang, no memory beyond bounds."""

import gzip
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless import files as disk
from gapless.errors import BadInput
from gapless.logs import Log, read
from gapless.logs.inspection import inspect
from tests.logs import samples

EACH = 160
WORDS = [b"1e999", b"-1e308", b"nan", b"NaN", b"inf", b"null", b"true", b'"x"', b"[]", b"{}", b"99999999999999999999999999"]
WORDS += [b"\xff" * 8, b"\x00" * 8, b"\xff\xff\xff\x7f", b"\n", b",", b'"', b"\x80"]


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes of the kinds that disks, cables, editors and attackers make."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        if not data:
            break
        at, other = (int(rng.integers(0, len(data))) for _ in range(2))
        length = int(rng.integers(1, 40))
        kind = rng.integers(0, 8)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 2:
            data[at:at] = rng.bytes(length)
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            data[at : at + length], data[other : other + length] = data[other : other + length], data[at : at + length]
        elif kind == 5:
            word = WORDS[int(rng.integers(0, len(WORDS)))]
            data[at : at + len(word)] = word
        elif kind == 6:
            data[at:at] = WORDS[int(rng.integers(0, len(WORDS)))]
        else:
            data[at:at] = data[other : other + 200]
    return bytes(data)


SMALL = 256 << 10
"""Bytes that reading any file may take beside 4 times its size: decompressors, headers, error texts, hashing."""


def peak_of(action: Callable[[], object]) -> int:
    """Bytes that Python, numpy and pyarrow held at most during an action."""
    import pyarrow as pa

    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        action()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    return peak + pool.max_memory()


def test_more_than_2000_mutated_files(tmp_path: Path) -> None:
    """Each loads, and can be inspected, or is refused in a sentence that names the file, within 4 times its memory."""
    made = samples.write_all(tmp_path)
    rng = np.random.default_rng(11)
    outcomes: dict[str, list[int]] = {}
    for name, (path, damaged) in made.items():
        whole = damaged.read_bytes()
        assert read(path).signals, f"{name} is whole"
        loaded = refused = 0
        for number in range(EACH):
            damaged.write_bytes(mutated(whole, rng))
            logs: list[Log] = []
            said = ""

            def attempt(path: Path = path, logs: list[Log] = logs) -> None:
                nonlocal said
                try:
                    logs.append(read(path))
                except BadInput as error:
                    said = str(error)

            held = peak_of(attempt)
            size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) if path.is_dir() else damaged.stat().st_size
            if held >= 4 * size + SMALL:  # the interpreter's table of interned names may have grown, which happens once
                held = peak_of(attempt)
            assert held < 4 * size + SMALL, (name, number, held, size, said)
            if logs:
                inspect(logs[0])
                loaded += 1
            else:
                assert "\n" not in said and len(said) < 600, (name, number, said)
                assert any(p.name in said for p in (damaged, path, *damaged.parents[:1])), (name, number, said)
                refused += 1
        damaged.write_bytes(whole)
        outcomes[name] = [loaded, refused]
    assert sum(map(sum, outcomes.values())) >= 2000 or "pace" not in made, outcomes
    assert all(refused > 0 for _, refused in outcomes.values()), outcomes


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files_of_every_format_are_refused_or_shorter(tmp_path: Path, share: float) -> None:
    for name, (path, damaged) in samples.write_all(tmp_path).items():
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[: int(len(whole) * share)])
        try:
            log = read(path)
            assert all(len(s.time) <= 60 for s in log.signals.values())
            assert name in ("own csv", "plain.csv", "sage state", "sage joints", "mapping"), f"{name} has an end to miss"
        except BadInput:
            pass
        damaged.write_bytes(whole)


def bombs(folder: Path) -> dict[str, Path]:
    """Small files that claim, or unpack to, very much."""
    folder.mkdir(exist_ok=True)
    mapping = '[[file]]\ntime = "t"\n[file.columns]\nx = { signal = "q", joint = "a" }\n'
    (folder / "gzip.csv.gz").write_bytes(gzip.compress(b"t,x\n" + b"0,0\n" * (12 << 20)))
    (folder / "gzip.toml").write_text(mapping)
    with zipfile.ZipFile(folder / "zeros.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("q.npy", "w") as file:
        np.lib.format.write_array(file, np.zeros(8 << 20))
    with zipfile.ZipFile(folder / "claims.npz", "w") as archive, archive.open("q.npy", "w") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (1 << 50,)}
        np.lib.format.write_array_header_1_0(file, header)
    with zipfile.ZipFile(folder / "zeros.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("zeros/data/0", bytes(64 << 20))
    with zipfile.ZipFile(folder / "asks.pt", "w") as archive:
        archive.writestr("asks/data.pkl", b"\x80\x02cbuiltins\nbytearray\nq\x00\x8a\x05\x00\x00\x00\x00\x10\x85R.")
        archive.writestr("asks/version", b"3\n")
    from mcap.writer import Writer

    with (folder / "chunk.mcap").open("wb") as stream:
        writer = Writer(stream, chunk_size=1 << 30)
        writer.start()
        schema = writer.register_schema("gapless.Sample", "jsonschema", b"{}")
        channel = writer.register_channel("/a", "json", schema, {"columns": '{"q": ["a"]}'})
        writer.add_message(channel, 0, b'{"time":0,"q":[' + b"0" * (64 << 20) + b"]}", 0)
        writer.finish()
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rows = 4_000_000
    column = pa.repeat(pa.scalar(0.0), rows)
    lists = pa.FixedSizeListArray.from_arrays(column, 1)
    parquet.write_table(pa.table({"timestamp": column, "observation.state": lists}), folder / "rows.parquet")
    one = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), column)
    parquet.write_table(pa.table({"timestamp": [0.0], "observation.state": one}), folder / "row.parquet")
    (folder / "deep.json").write_text('{"entries": ' + "[" * 200_000)
    (folder / "empty.json").write_text('{"entries": [' + "{}," * 1_000_000 + "{}]}")
    return {p.name: p for p in folder.iterdir() if p.suffix != ".toml"}


PEAK = """
import os, sys
from gapless.errors import BadInput
from gapless.logs import read
def peak(): return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
def attempt(path):
    try: read(path); return "loaded"
    except BadInput as error: return str(error)
files, warm = (text.split("|") for text in sys.argv[1:])
for path in warm: attempt(path)
before = peak()  # with all that reading loads and frees again
for path in files:  # each in a child of its own, so that none hides behind the peak of another
    if not os.fork():
        said = attempt(path)
        print(peak() - before, said, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, path
"""


def peaks(files: list[Path], warm: list[Path]) -> list[tuple[Path, int, str]]:
    """Bytes by which reading each file grows a process, after others were read, and what was said of it."""
    arguments = ["|".join(map(str, paths)) for paths in (files, warm)]
    done = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return [(path, int(grown), said) for path, (grown, said) in zip(files, lines, strict=True)]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_bombs_stay_within_bounds(tmp_path: Path) -> None:
    """A refused bomb costs its own size and a constant; nothing near what it claims (48 MB to petabytes)."""
    whole = [path for path, _ in samples.write_all(tmp_path).values()]
    made = bombs(tmp_path / "bombs")
    for path, grown, said in peaks(list(made.values()), whole):
        assert path.name in said, said
        assert grown < 4 * path.stat().st_size + (32 << 20), (path.name, grown, said)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_large_honest_file_takes_at_most_four_times_its_size(tmp_path: Path) -> None:
    warm = [path for path, _ in samples.write_all(tmp_path).values() if path.suffix in (".csv", ".json")]
    (tmp_path / "long.csv").write_bytes(b"t,x,y\n" + b"".join(b"%d,1,2\n" % i for i in range(1_500_000)))
    (tmp_path / "long.toml").write_text(
        '[[file]]\ntime = "t"\n[file.columns]\nx = { signal = "q", joint = "a" }\ny = { signal = "q", joint = "b" }\n'
    )
    with (tmp_path / "long.json").open("w") as file:
        entry = '{"position":0,"speed":0,"timestamp":%d,"goal_position":1}'
        file.write('{"entries":[' + ",".join(entry % i for i in range(200_000)) + "]}")
    for path, grown, said in peaks([tmp_path / "long.csv", tmp_path / "long.json"], warm):
        assert said == "loaded"
        assert grown < 4 * path.stat().st_size + (16 << 20), (path.name, grown / path.stat().st_size)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_dense_json_in_one_chunk_takes_four_times_its_text(tmp_path: Path) -> None:
    """A number of two characters takes 8 bytes; chunk and parser add a constant only (18 MiB measured)."""
    from mcap.writer import CompressionType, Writer

    path, joints = tmp_path / "dense.mcap", 1000
    names = ",".join(f'"{i}"' for i in range(joints))
    with path.open("wb") as stream:
        writer = Writer(stream, chunk_size=1 << 30, compression=CompressionType.NONE)
        writer.start()
        schema = writer.register_schema("gapless.Sample", "jsonschema", b"{}")
        channel = writer.register_channel("/a", "json", schema, {"columns": f'{{"q": [{names}]}}'})
        for i in range(10_000):
            writer.add_message(channel, i, b'{"time":%d,"q":[' % i + b",".join([b"0"] * joints) + b"]}", i)
        writer.finish()
    ((_, grown, said),) = peaks([path], [samples.write_all(tmp_path)["own mcap"][0]])
    assert said == "loaded"
    assert grown < 4 * path.stat().st_size + (32 << 20), grown / path.stat().st_size


def test_one_message_of_very_many_numbers_is_refused(tmp_path: Path) -> None:
    from mcap.writer import Writer

    path = tmp_path / "long.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        schema = writer.register_schema("gapless.Sample", "jsonschema", b"{}")
        channel = writer.register_channel("/a", "json", schema, {"columns": '{"q": ["a"]}'})
        writer.add_message(channel, 0, b'{"time":0,"q":[' + b"0," * 500_000 + b"0]}", 0)
        writer.finish()
    with pytest.raises(BadInput, match="message 0 has 1000018 bytes; a sample has at most 262144"):
        read(path)


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
def test_chunks_larger_than_a_piece_are_read_whole(tmp_path: Path, compression: str) -> None:
    from mcap.writer import CompressionType, Writer

    path, n = tmp_path / "long.mcap", 30_000
    with path.open("wb") as stream:
        writer = Writer(stream, chunk_size=1 << 30, compression=CompressionType[compression])
        writer.start()
        schema = writer.register_schema("gapless.Sample", "jsonschema", b"{}")
        channel = writer.register_channel("/a", "json", schema, {"columns": '{"q": ["a", "b"]}'})
        for i in range(n):
            writer.add_message(channel, i, b'{"time":%d,"q":[%d,%d.25]}' % (i, -i, i), i)
        writer.finish()
    log = read(path)
    assert np.array_equal(log["q"].time, np.arange(n))
    assert np.array_equal(log["q"].values, np.column_stack([-np.arange(n), np.arange(n) + 0.25]))


def test_a_parquet_page_cannot_claim_more_than_the_file_can_hold(tmp_path: Path) -> None:
    """One row that is a list of zeros: a kilobyte, and 32 MB of numbers."""
    path = bombs(tmp_path / "bombs")["row.parquet"]

    def attempt() -> None:
        with pytest.raises(BadInput, match="4000003 values in 1 rows are more than"):
            read(path)

    attempt()  # imports
    assert peak_of(attempt) < 4 * path.stat().st_size + SMALL


def test_a_log_longer_than_memory_is_refused_with_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = samples.write_all(tmp_path)
    monkeypatch.setattr(disk, "available_memory", lambda: 10)
    for name in ("own npz", "bam", "ros.mcap", "lerobot"):
        with pytest.raises(BadInput, match=r"GB of memory and 0\.0 GB are free; cut the log"):
            read(made[name][0])
    (tmp_path / "long.csv").write_text("t,x\n" + "".join(f"{i},0.123456789012\n" for i in range(200_000)))
    (tmp_path / "long.toml").write_text('[[file]]\ntime = "t"\n[file.columns]\nx = { signal = "q", joint = "a" }\n')
    with pytest.raises(BadInput, match="GB of memory"):
        read(tmp_path / "long.csv")
