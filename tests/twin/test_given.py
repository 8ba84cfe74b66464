"""The model as given: one twin for replay, gap and fit, with the gains that a log or a user states."""

import json

import numpy as np
import pytest

from gapless.cli import main
from gapless.errors import BadInput
from gapless.gap import measure
from gapless.identify import fit
from gapless.logs import Log, read
from gapless.twin import as_given


def test_replay_gap_and_fit_start_from_one_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["standin", "--random", "--robot", "bench", "--difficulty", "easy", "--seed", "3", "--out", "s.toml"])
    main(["standin", "s.toml", "--seconds", "8", "--out", "log.npz"])
    capsys.readouterr()
    main(["replay", "bench", "log.npz", "--json"])
    replayed = json.loads(capsys.readouterr().out)["rmse"]["q"]["servo"]
    twin = as_given("bench", log := read("log.npz"))
    assert measure(twin, [log])["q"].of("given", "free") == pytest.approx(replayed, rel=1e-6)
    assert fit(twin, [log]).heldout.given == pytest.approx(replayed, rel=1e-6)


@pytest.mark.parametrize(("kp", "expected"), [({"servo": 7.0}, 7.0), (9.0, 9.0)])
def test_gains_in_a_log_are_those_of_the_model_unless_stated(kp, expected):
    clock = np.arange(10) * 0.01
    log = Log.from_arrays(("servo",), clock, {"q": np.zeros((10, 1))}, meta={"kp": kp})
    for twin, gain in ((as_given("bench", log), expected), (as_given("bench", log, kp=5.0), 5.0)):
        assert twin.space.nominal[twin.space.names.index("gains.kp/servo")] == pytest.approx(gain)


@pytest.mark.parametrize("gains", [{"kp": 0.0}, {"kp": float("nan")}, {"kd": -1.0}])
def test_a_gain_that_no_drive_has_is_refused(gains):
    with pytest.raises(BadInput, match="the gain k[pd] must be"):
        as_given("bench", **gains)
