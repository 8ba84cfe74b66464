"""The page of a replay: complete in one file, and drawn by a real browser without a network."""

import numpy as np

from gapless.twin import Twin
from gapless.worlds import StandIn, record, replay
from gapless.worlds import StandInSpec as Spec
from gapless.worlds import plan_motion as plan
from gapless.worlds import replay_page as page
from tests.report.browser import browse, needs_browser

OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
ASK = """<script>setTimeout(() => {
  const asked = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.title = "asked for: " + (asked.join(" ") || "nothing");
}, 3000)</script>"""


@needs_browser
def test_a_browser_draws_the_page_without_a_network(tmp_path):
    robot, twin = StandIn(Spec("arm")), Twin.load("arm")
    log = record(robot, plan("steps", twin, 1.0, np.random.default_rng(0)))
    page({"one": replay(twin, log), "two": replay(twin, log, window=0.2)}, tmp_path / "replay.html")
    file = tmp_path / "replay.html"
    file.write_text(file.read_text() + ASK)
    dom = browse(file.as_uri(), tmp_path / "profile", "--virtual-time-budget=15000", OFFLINE, "--dump-dom")
    assert dom.count('class="main-svg"') >= 2 * 2  # plotly draws each figure in at least two layers
    for joint in twin.joints:
        assert dom.count(f">{joint}</text>") == 2
    assert dom.count('class="js-line"') >= 2 * 3 * 6  # command, measured, replayed
    assert "<title>asked for: nothing</title>" in dom
