"""Replays: errors over several logs, printed, saved and loaded; the page is drawn by a real browser without a network."""

import numpy as np
import pytest

from gapless.measure import Replays, replay_logs
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion as plan, record, replay
from tests.report.browser import browse, needs_browser

OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
ASK = """<script>setTimeout(() => {
  const asked = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.title = "asked for: " + (asked.join(" ") || "nothing");
}, 3000)</script>"""


@pytest.fixture(scope="module")
def logs():
    twin = Twin.load("arm")
    return [record(StandIn(Spec("arm", seed=s)), plan("steps", twin, 1.0 + s, np.random.default_rng(s))) for s in (0, 1)]


def test_errors_are_pooled_over_all_samples(logs):
    twin = Twin.load("arm")
    result = replay_logs(twin, logs)
    each = [replay(twin, log) for log in logs]
    every = np.concatenate([r.error("q")[0, 0] for r in each])
    np.testing.assert_allclose(list(result.rmse["q"].values()), np.sqrt((every**2).mean(axis=0)))
    commands = np.concatenate([(r.command - r.measured["q"])[0] for r in each])
    np.testing.assert_allclose(list(result.command.values()), np.sqrt((commands**2).mean(axis=0)))
    assert list(result.logs) == ["log 1", "log 2"]
    assert result.robot_seconds == pytest.approx(3.0, abs=0.1)


def test_horizons_are_those_that_windows_reach(logs):
    result = replay_logs(Twin.load("arm"), logs[:1], window=0.2)
    assert list(result.horizons) == [0.05, 0.1, 0.2]
    assert np.mean(list(result.horizons[0.05].values())) < np.mean(list(result.horizons[0.2].values()))


def test_a_result_comes_back_from_its_folder(logs, tmp_path):
    result = replay_logs(Twin.load("arm"), logs, window=0.2)
    result.save(tmp_path / "x")
    back = Replays.load(tmp_path / "x")
    assert back.json() == result.json()
    assert str(back) == str(result)
    assert "2 logs, in windows of 0.2 s" in str(back)


@needs_browser
def test_a_browser_draws_the_page_without_a_network(logs, tmp_path):
    twin = Twin.load("arm")
    file = tmp_path / "replay.html"
    replay_logs(twin, logs, window=0.2).page(file)
    file.write_text(file.read_text() + ASK)
    dom = browse(file.as_uri(), tmp_path / "profile", "--virtual-time-budget=15000", OFFLINE, "--dump-dom")
    assert dom.count('class="main-svg"') >= 2 * 2 * 6  # plotly draws each figure in at least two layers
    for joint in twin.joints:
        assert dom.count(f"<figcaption>{joint}: ") == 2
    assert dom.count('class="js-line"') >= 2 * 3 * 6  # command, measured, replayed
    assert "<title>asked for: nothing</title>" in dom
