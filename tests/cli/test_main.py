"""The frame of the command line: what it offers, a name that nearly exists, a full disk, a robot that cannot be driven."""

import subprocess
import sys
from pathlib import Path

import pytest

import gapless
from gapless.cli import COMMANDS, main

PASSIVE = '<mujoco><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom size=".1"/></body></worldbody></mujoco>'


def ends(capsys, *argv: str) -> tuple[int, str]:
    """Exit code and the one sentence on stderr."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(list(argv))
    return int(caught.value.code or 0), capsys.readouterr().err.strip()


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_all_commands_in_the_order_of_the_loop_in_a_line_each_of_80_columns(argv, capsys):
    main(argv)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(COMMANDS)
    assert max(map(len, lines)) <= 80
    assert all(len(line.split()) > 3 for line in lines if line.startswith("  "))


def test_the_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"gapless {gapless.__version__}\n"


def test_a_command_that_nearly_exists_is_suggested(capsys):
    code, sentence = ends(capsys, "inspct")
    assert code == 2
    assert sentence.startswith("gapless: unknown command 'inspct': did you mean 'inspect'")


@pytest.mark.parametrize("argv", [["robots", "--json"], ["--version"]])
def test_a_full_disk_is_one_sentence(argv, capsys, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        code, sentence = ends(capsys, *argv)
        monkeypatch.undo()
        full.close = lambda: None
    assert code == 2
    assert sentence == "gapless: No space left on device: not everything could be written"


def test_what_needs_more_memory_than_there_is_is_one_sentence(capsys, monkeypatch):
    def hungry(name: str, words: list[str]) -> None:
        raise MemoryError("Unable to allocate 805. GiB")

    monkeypatch.setattr("gapless.cli.parsed", hungry)
    code, sentence = ends(capsys, "course")
    assert code == 2
    assert sentence.startswith("gapless: there is not enough memory: Unable to allocate 805. GiB; take fewer at once")


def test_a_module_is_a_command_too():
    done = subprocess.run([sys.executable, "-m", "gapless", "--version"], capture_output=True, text=True)
    assert done.stdout == f"gapless {gapless.__version__}\n"


def test_a_robot_without_drives_is_refused_in_one_sentence_by_every_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("passive.xml").write_text(PASSIVE)
    main(["standin", "--random", "--robot", "bench", "--out", "s.toml"])
    main(["standin", "s.toml", "--seconds", "6", "--out", "log.npz"])
    for argv in (
        ["replay", "passive.xml", "log.npz"],
        ["gap", "passive.xml", "log.npz"],
        ["gap", "passive.xml", "log.npz", "--measure-only"],
        ["fit", "passive.xml", "log.npz", "--out", "fitted"],
        ["excite", "passive.xml", "--out", "motion.csv"],
    ):
        code, sentence = ends(capsys, *argv)
        assert code == 2
        assert "passive has no drives" in sentence
        assert "\n" not in sentence


@pytest.mark.parametrize(
    "argv",
    [
        ["excite", "bench"],
        ["standin", "s.toml"],
        ["standin", "--random"],
        ["fit", "bench", "log.npz"],
        ["train", "swing", "--robot", "bench"],
    ],
)
def test_what_a_command_makes_goes_only_where_it_is_told_to(argv, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["standin", "--random", "--robot", "bench", "--out", "s.toml"])
    main(["standin", "s.toml", "--seconds", "6", "--out", "log.npz"])
    code, sentence = ends(capsys, *argv)
    assert code == 2
    assert sentence.startswith("gapless: say where ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.npz", "s.toml"]
