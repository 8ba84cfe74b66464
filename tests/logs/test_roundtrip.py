"""A log that is written and read back is the same to the last bit."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from gapless.errors import BadInput
from gapless.logs import Log, read, write

WRITTEN = ("npz", "mcap", "csv")


def same_bits(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and bool(np.all((a.view(np.uint64) == b.view(np.uint64)) | (np.isnan(a) & np.isnan(b))))


def assert_same(log: Log, other: Log) -> None:
    assert other.joints == log.joints and dict(other.meta) == dict(log.meta)
    assert set(other.signals) == set(log.signals)
    for name, signal in log.signals.items():
        again = other[name]
        assert again.columns == signal.columns
        assert same_bits(np.ascontiguousarray(again.time), np.ascontiguousarray(signal.time))
        assert same_bits(again.host_time, signal.host_time)
        assert same_bits(np.ascontiguousarray(again.values), np.ascontiguousarray(signal.values))


@pytest.mark.parametrize("format", WRITTEN)
def test_two_clocks_missing_values_and_constants_survive(small: Log, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"log.{format}"
    write(small, path)
    again = read(path)
    assert_same(small, again)
    assert again.provenance.format == format and len(again.provenance.sha256) == 64
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("format", WRITTEN)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=arrays(np.float64, (7, 2), elements=st.floats(allow_infinity=False, width=64)))
def test_any_numbers_survive(tmp_path: Path, format: str, values: np.ndarray) -> None:
    log = Log.from_arrays(("a b", 'c,"d'), np.cumsum(np.abs(np.nan_to_num(values[:, 0])) % 1), {"q": values})
    write(log, tmp_path / f"any.{format}")
    assert_same(log, read(tmp_path / f"any.{format}"))


@pytest.mark.parametrize("format", WRITTEN)
def test_a_real_log_survives(data: Path, tmp_path: Path, format: str) -> None:
    log = read(data / "so101" / "motions" / "wave_motion", "so101")
    write(log, tmp_path / f"wave.{format}")
    again = read(tmp_path / f"wave.{format}")
    assert_same(log, again)
    assert set(log.provenance.notes) <= set(again.provenance.notes)


def test_many_samples_go_over_the_blocks_of_reader_and_writer(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    log = Log.from_arrays(("a", "b"), np.arange(30_000) * 1e-3, {"q": rng.standard_normal((30_000, 2))})
    for format in WRITTEN:
        write(log, tmp_path / f"long.{format}")
        assert_same(log, read(tmp_path / f"long.{format}"))


def test_writing_elsewhere_is_refused_in_a_sentence(small: Log, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"written as \.npz, \.mcap or \.csv"):
        write(small, tmp_path / "log.xlsx")
    with pytest.raises(BadInput, match="there is no folder"):
        write(small, tmp_path / "no" / "log.npz")


def test_a_failed_write_leaves_the_old_file(small: Log, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    write(small, path)
    before = path.read_bytes()
    with pytest.raises(BadInput, match="no log format can keep"):
        write(Log(small.signals, small.joints, small.provenance, {"x": object()}), path)
    assert path.read_bytes() == before
