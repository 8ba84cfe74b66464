"""Fit: the object of a fit prints itself, saves itself to a folder, and comes back from there."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.identify import Fit, fit
from gapless.twin import as_given, load_belief, load_recipe
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record, replay


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    spec = Spec("bench", tolerance=0, change={"gains.kp/*": "x0.7", "offset.encoder/*": "+0.03"}, sensors={"noise_q": 0.0003})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 6.0, np.random.default_rng(0)), stand_in.signal)
    found = fit(as_given("bench", log), [log])
    folder = tmp_path_factory.mktemp("fit") / "fitted"
    found.save(folder)
    return found, folder, log


def test_a_fit_comes_back_from_its_folder(fitted):
    found, folder, log = fitted
    assert sorted(p.name for p in folder.iterdir()) == ["belief.json", "fit.json", "report.html", "twin.xml"]
    back = Fit.load(folder)
    assert back.json() == found.json() == json.loads((folder / "fit.json").read_text())
    assert back.parameters == found.parameters
    assert str(back) == str(found)
    np.testing.assert_allclose(back.belief.mean(), found.belief.mean())
    errors = [replay(f.twin, log, f.values).rmse("q")[0, 0] for f in (found, back)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-6)
    load_recipe("bench", folder / "belief.json").accepts(load_belief(folder / "belief.json").space)
    back.page(folder / "again.html")  # without traces: no curves, all of the tables
    assert "All" in (folder / "again.html").read_text()


def test_a_fit_says_where_it_comes_from(fitted):
    origin = fitted[0].origin
    assert origin.model == "bench"
    assert len(origin.sha256["bench"]) == 64
    assert "mujoco" in origin.versions


def test_it_prints_as_text_in_short_and_in_a_notebook(fitted):
    found = replace(fitted[0], robot="<b>bench</b>", warnings=["<script>evil()</script>"])
    text = str(found)
    assert "Held-out error fell" in text
    assert "not needed" in text
    assert max(map(len, text.splitlines())) <= 100
    assert repr(found).startswith("<Fit: Held-out error fell")
    assert "\n" not in repr(found)
    assert "<script>" not in found._repr_html_()
    assert "Held-out error fell" in found._repr_html_()


def test_what_is_no_fit_is_refused_by_name(fitted, tmp_path):
    found, folder, _ = fitted
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadInput, match="taken: not a folder"):
        found.save(tmp_path / "taken")
    with pytest.raises(BadInput, match="nowhere"):
        Fit.load(tmp_path / "nowhere")
    whole = json.loads((folder / "fit.json").read_text())
    for change in ({"ladder": 3}, {"parameters": {"a": 1}}, {"zeros": {"x": [1]}}, {"suspicions": "yes"}):
        copy = tmp_path / "copy"
        found.save(copy)
        (copy / "fit.json").write_text(json.dumps(whole | change))
        with pytest.raises(BadInput, match=r"fit\.json: not a saved Fit"):
            Fit.load(copy)
