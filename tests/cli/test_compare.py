"""`gapless compare` refuses what it cannot do in one sentence, before anything is trained."""

import pytest

from gapless.cli import main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--techniques", "infromed", "--out", "new"], "did you mean 'informed'"),
        (["--mismatches", "grip", "--out", "new"], "unknown mismatch of the pendulum 'grip'"),
        (["--seeds", "0", "--out", "new"], "at least 1"),
        (["--techniques", "nothing", "--ray", "127.0.0.1:1", "--out", "ray"], "--ray"),
        (["--jobs", "0", "--out", "new"], "--jobs must be at least 1, not 0"),
        ([], "--out"),
        (["--out", "taken"], "not a folder"),
    ],
)
def test_bad_input_exits_2_with_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(SystemExit) as caught:
        main(["compare", *words])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert not (tmp_path / "new").exists()
