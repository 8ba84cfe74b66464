"""Files that torch saved are read without torch or pickle: what honest ones hold, and how hostile ones end."""

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.logs import read
from tests.logs import samples

TIME, Q, Q_CMD = samples.TIME, samples.Q, samples.Q_CMD


def saved(path: Path, content: Any, protocol: int = 2, **members: bytes) -> Path:
    """A file as torch would save it, of anything that pickle can describe."""
    return described(path, content if isinstance(content, bytes) else pickle.dumps(content, protocol), **members)


def described(path: Path, description: bytes, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("log/data.pkl", description)
        for name, content in members.items():
            archive.writestr(f"log/{name.replace('_', '/')}", content)
    return path


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, dims: bytes | None = None) -> bytes:
    """The description of {"time": a tensor of float64 in storage 0}, with any claims about its shape."""

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"\x8a\x08" + v.to_bytes(8, "little", signed=True) for v in values) + b"t"

    storage = b"((X\x07\0\0\0storagectorch\nDoubleStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQ"
    claims = b"\x8a\x08" + offset.to_bytes(8, "little", signed=True) + numbers(shape) + numbers(strides)
    return b"\x80\x02}X\x04\0\0\0timectorch._utils\n_rebuild_tensor_v2\n" + storage + claims + b"\x89}tRs."


def test_numpy_arrays_numbers_and_lists_are_read_beside_tensors(tmp_path: Path) -> None:
    """kp and kd as one number a joint, in whatever they were saved as, become constants by joint."""
    for protocol in (2, 3, 4):
        for kp in (np.array([80.0, 120.0]), [80, 120], np.array([80, 120], np.int32)):
            content = {"time": TIME, "dof_pos": np.asfortranarray(Q), "des_dof_pos": Q_CMD, "kp": kp, "kd": np.float64(2.5)}
            log = read(saved(tmp_path / "log.pt", content | {"robot": "z1", "days": [1, "two"]}, protocol))
            assert np.array_equal(log["q"].values, Q) and np.array_equal(log["q_cmd"].values, Q_CMD)
            assert log.meta == {"kp": {"joint0": 80.0, "joint1": 120.0}, "kd": 2.5}


def test_what_torch_saves_is_read_to_the_last_bit(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="writes the file to compare with")
    both = torch.tensor(np.hstack([Q, Q_CMD]))
    content = {"time": torch.tensor(TIME), "dof_pos": both[:, :2], "des_dof_pos": both[:, 2:].t().contiguous().t()}
    torch.save(content | {"kp": np.array([80.0, 120.0]), "kd": torch.tensor([2, 3])}, tmp_path / "log.pt")
    log = read(tmp_path / "log.pt")
    assert np.array_equal(log["q"].time, TIME) and np.array_equal(log["q"].values, Q)
    assert np.array_equal(log["q_cmd"].values, Q_CMD), "a tensor whose columns lie one after the other"
    assert log.meta == {"kp": {"joint0": 80.0, "joint1": 120.0}, "kd": {"joint0": 2.0, "joint1": 3.0}}


def test_gains_by_sample_are_signals_and_a_mapping_may_name_other_arrays(tmp_path: Path) -> None:
    content = {"time": TIME, "dof_pos": Q, "kp": np.full((60, 2), 20.0), "t": TIME, "angle": np.degrees(Q)}
    log = read(saved(tmp_path / "log.pt", content))
    assert np.all(log["kp"].values == 20.0) and "kp" not in log.meta
    (tmp_path / "mine.toml").write_text('[[file]]\ntime = "t"\n[file.columns]\nangle = { signal = "q", unit = "deg" }\n')
    assert read(tmp_path / "log.pt", tmp_path / "mine.toml")["q"].values == pytest.approx(Q)


class Runs:
    """Would be executed by whoever unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)

    folder: Path


def test_a_file_that_would_run_something_is_refused_and_does_not(tmp_path: Path) -> None:
    Runs.folder = tmp_path / "executed"
    with pytest.raises(BadInput, match="refers to 'posix mkdir', which no log needs"):
        read(saved(tmp_path / "log.pt", {"time": Runs()}))
    with pytest.raises(BadInput, match="refers to 'posix mkdir', which no log needs"):
        read(saved(tmp_path / "log.pt", {"time": Runs()}, protocol=4))
    assert not Runs.folder.exists()


@pytest.mark.parametrize(
    ("description", "said"),
    [
        (tensor((4,), (1,)), "holds time and dof_pos"),
        (tensor((5,), (1,)), "does not fit its storage"),
        (tensor((1 << 40,), (0,)), "does not fit its storage"),
        (tensor((2,), (1 << 40,)), "does not fit its storage"),
        (tensor((2,), (-1,), 2), "a size that is none"),
        (tensor((4,), (1,), 1), "does not fit its storage"),
        (tensor((1, 1, 1), (1, 1, 1)), "3 dimensions"),
        (pickle.dumps({"time": np.array([{}])}, 2), "'O8' is not one of plain numbers"),
        (pickle.dumps({"time": np.array([1j])}, 2), "'c16' is not one of plain numbers"),
        (pickle.dumps({"time": np.zeros(3, ">f8")}, 2), "not little-endian"),
        (pickle.dumps({"time": np.zeros((1, 1, 1))}, 2), "3 dimensions"),
        (
            pickle.dumps({"time": np.arange(300)}, 2).replace(b"M,\x01", b"M\xff\xff"),
            r"shape \(65535,\) does not fit its bytes",
        ),
        (pickle.dumps([1, 2], 2), "holds a list, not a dict"),
        (b"\x80\x02" + b"}" * 60_000 + b".", "more than 50000 instructions"),
        (b"\x80\x02})" + b"\x85" * 20_000 + b"K\x01s.", "holds time and dof_pos"),
        (b"\x80\x02}X\x04\0\0\0time]\x8a\xff" + b"\x7f" * 255 + b"as.", "is damaged"),
        (b"\x80\x02cnumpy\nndarray\n)R.", "is damaged"),
        (b"\x80\x02Nb.", "is damaged"),
        (b"\x80\x02t.", "is damaged"),
        (b"\x80\x02" + b"h\x07.", "is damaged"),
        (b"\x80\x02I1\n.", "the instruction INT, which no log needs"),
        (b"\x80\x02", "is damaged"),
    ],
)
def test_descriptions_that_lie_end_in_one_sentence(tmp_path: Path, description: bytes, said: str) -> None:
    path = described(tmp_path / "log.pt", description, data_0=np.arange(4.0).tobytes())
    with pytest.raises(BadInput, match=said) as error:
        read(path)
    assert path.name in str(error.value) and "\n" not in str(error.value)


def test_a_text_that_is_used_again_and_again_does_not_fill_the_memory(tmp_path: Path) -> None:
    text = b"X" + (1 << 16).to_bytes(4, "little") + b"a" * (1 << 16) + b"q\x00"
    again = b"c_codecs\nencode\nq\x01" + text + b"X\x06\0\0\0latin1q\x02"
    bytes_made = b"(h\x01(h\x00h\x02tR" * 5_000
    with pytest.raises(BadInput, match="makes more bytes than the file has"):
        read(described(tmp_path / "log.pt", b"\x80\x02" + again + bytes_made + b"."))


def test_a_storage_used_by_many_tensors_is_refused_when_it_grows_too_much(tmp_path: Path) -> None:
    column = np.zeros(200_000)
    content = pickle.dumps({"time": column, **{f"q{i}": column for i in range(20)}}, 4)
    with pytest.raises(BadInput, match="grows too much as 64-bit numbers"):
        read(described(tmp_path / "log.pt", content))


def test_a_storage_of_another_byte_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="big-endian"):
        read(described(tmp_path / "log.pt", tensor((4,), (1,)), data_0=bytes(32), byteorder=b"big"))
