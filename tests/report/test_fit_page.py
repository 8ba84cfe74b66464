"""The report of a fit: a verdict in words, whole in one small file, and drawn by a real browser without a network."""

import copy
import json
import re

import numpy as np
import pytest

from gapless.report.fit import Trace, page, verdict
from gapless.twin import Twin
from gapless.worlds import replay
from gapless.worlds.motion import plan
from gapless.worlds.standin import Spec, StandIn, record
from tests.report.browser import browse, needs_browser

SUMMARY = {
    "robot": "arm",
    "parameters": {
        "latency.action": {"value": 0.01, "low": 0.008, "high": 0.012, "nominal": 0.0, "unit": "s", "identified": True},
        "gains.kp/elbow": {"value": 17.4, "low": 17.0, "high": 17.9, "nominal": 20.0, "unit": "Nm/rad", "identified": True},
        "gains.kd/elbow": {"value": 0.4, "low": 0.01, "high": 9.0, "nominal": 1.0, "unit": "Nms/rad", "identified": False},
        "gains.kd/wrist": {"value": 5.0, "low": 5.0, "high": 5.0, "nominal": 1.0, "unit": "Nms/rad", "at_bound": True},
    },
    "undetermined": [{"parameters": ["gains.kd"], "meaning": "nothing moved fast"}],
    "errors": {
        "train": {"command": 0.09, "delay": 0.04, "nominal": 0.013, "fit": 0.0019},
        "heldout": {"command": 0.0977, "delay": 0.041, "nominal": 0.01466, "fit": 0.002094},
    },
    "ladder": [
        {"name": "as given", "heldout": 0.0138, "gain": 0.0, "error": 0.0, "climbed": True},
        {"name": "+ friction with load", "heldout": 0.0137, "gain": 0.001, "error": 0.003, "climbed": False},
    ],
    "warnings": [],
    "trusted": True,
    "seconds": 12.3,
    "logs": ["one.npz", "two.npz"],
    "versions": {"gapless": "0.1.0"},
    "provenance": {"model": {"sha256": "ab12"}, "seed": 0},
}
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
WATCH = """<script>const faults = [];
addEventListener("error", (event) => faults.push(event.message));
console.error = (...said) => faults.push(said.join(" "));</script>"""
TELL = """<script>setTimeout(() => { document.title = JSON.stringify({
  faults, asked: performance.getEntriesByType("resource").map((entry) => entry.name), drawn: document.body.dataset.drawn,
  plots: document.querySelectorAll("figure").length, svg: document.querySelectorAll(".plot .main-svg").length,
  sideways: document.documentElement.scrollWidth > innerWidth, evil: typeof evil !== "undefined",
  images: document.querySelectorAll("img").length, links: document.querySelectorAll("a").length,
  paper: getComputedStyle(document.body).backgroundColor,
}); }, 20000)</script>"""
EVIL = '<img src=x onerror="evil=1"></script><script>evil=1</script><a href="http://evil.test">&amp;{{ 7 * 7 }}'


def traces(names: tuple[str, ...] = ("one", "two"), seconds: float = 8.0) -> list[Trace]:
    twin = Twin.load("arm")
    out = []
    for seed, name in enumerate(names):
        log = record(StandIn(Spec("arm", seed=seed)), plan("rich", twin, seconds, np.random.default_rng(seed)))
        values = np.stack([twin.space.nominal, twin.space.values({"latency.action": 0.004})])
        r = replay(twin, log, values)
        q, time = r.measured["q"][0], r.time[0]
        out.append(
            Trace(
                name=name,
                joints=tuple(twin.joints),
                time=time,
                measured=q,
                command=r.command[0],
                delayed=r.command[0],
                nominal=r.replayed["q"][0, 0],
                fitted=r.replayed["q"][1, 0],
                heldout=(time // 2).astype(int) % 2 == 1,
                dq=np.gradient(q, time, axis=0),
                load=5 * (r.command[0] - q),
                temperature=np.full(q.shape, 30.0) + time[:, None],
            )
        )
    return out


@needs_browser
@pytest.mark.parametrize(("scheme", "paper"), [("0", "rgb(22, 24, 27)"), ("1", "rgb(255, 255, 255)")])
def test_a_browser_draws_every_plot_by_day_and_by_night_and_runs_nothing_from_a_log(scheme, paper, tmp_path):
    made = [Trace(**{**vars(t), "joints": (EVIL, *t.joints[1:])}) for t in traces(("one", EVIL))]
    summary = copy.deepcopy(SUMMARY) | {"robot": EVIL, "logs": [EVIL], "provenance": {EVIL: EVIL}, "warnings": [EVIL]}
    summary["parameters"] |= {f"gains.kp/{EVIL}": summary["parameters"]["gains.kp/elbow"] | {"unit": EVIL}}
    summary["undetermined"] += [{"parameters": [EVIL], "meaning": EVIL}]
    file = tmp_path / "fit.html"
    page(summary, made, file)
    assert file.stat().st_size < 8e6
    file.write_text(file.read_text().replace("<head>", "<head>" + WATCH, 1) + TELL)
    flags = (f"--blink-settings=preferredColorScheme={scheme}", "--virtual-time-budget=60000", OFFLINE, "--window-size=500,900")
    dom = browse(file.as_uri(), tmp_path / "profile", *flags, "--dump-dom")
    said = json.loads(re.findall("<title>(.*?)</title>", dom)[0].replace("&amp;", "&"))
    joints = len(made[0].joints)
    plots = 1 + 2 * joints + 3 + 5 * joints  # baselines, stretches, quantities, what is left
    assert said == {
        "faults": [],
        "asked": [],
        "drawn": "all",
        "plots": plots,
        "svg": said["svg"],
        "sideways": False,
        "evil": False,
        "images": 0,
        "links": 0,
        "paper": paper,
    }
    assert said["svg"] >= 2 * plots  # plotly draws each figure in at least two layers
    assert "49" not in dom.split("<h1>")[1].split("</h1>")[0]


def test_the_page_says_what_was_fitted_and_what_is_not_known(tmp_path):
    page(SUMMARY, traces(), tmp_path / "fit.html")
    body = (tmp_path / "fit.html").read_text().split("<body>")[1]
    for words in (
        "Held-out error fell from 0.84 to 0.12 deg (7.0 times); the command alone is 5.6.",
        "not determined by these logs",
        "at a bound: not to be trusted",
        "0.01 to 9",
        "nothing moved fast",
        "left out",
        "model sha256",
        "What is left, against temperature",
    ):
        assert words in body, words


def test_a_fit_that_is_not_to_be_trusted_says_so_first():
    bad = SUMMARY | {"trusted": False, "warnings": ["the command alone is better."]}
    said = verdict(bad)
    assert said.text.startswith("Do not use it: the command alone is better.")
    assert not said.good
    assert verdict(SUMMARY).good
    worse = copy.deepcopy(SUMMARY)
    worse["errors"]["heldout"] |= {"fit": 0.02, "command": None}
    assert "did not fall" in verdict(worse).text
    assert "nothing is known" in verdict({}).text


def test_errors_are_those_of_the_held_out_samples():
    n = 100
    flat = np.zeros((n, 1))
    heldout = np.arange(n) >= 50
    fitted = np.where(heldout[:, None], np.radians(2.0), np.radians(9.0))
    fitted[60] = np.nan
    t = Trace("log", ("a",), np.arange(n) / 10, flat, flat, flat, flat, fitted, heldout, flat, flat)
    assert t.error("fitted", 0, heldout) == pytest.approx(2.0)
    assert np.isnan(t.error("fitted", 0, np.zeros(n, dtype=bool)))


def test_a_page_is_made_of_little_and_of_much(tmp_path):
    page({}, [], tmp_path / "empty.html")
    assert "a robot" in (tmp_path / "empty.html").read_text()
    rng = np.random.default_rng(0)
    n, joints = 60_000, tuple(f"joint_{i}" for i in range(30))
    noise = rng.standard_normal((n, len(joints)))
    much = Trace("long", joints, np.arange(n) / 500, *[noise] * 5, np.ones(n, dtype=bool), noise, noise, noise)
    page(SUMMARY, [much] * 3, tmp_path / "much.html")
    assert (tmp_path / "much.html").stat().st_size < 8e6
