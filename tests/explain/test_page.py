"""The report of a gap: verdict, causes, horizons and stretches, drawn by a real browser without a network."""

import copy
import dataclasses
import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

from gapless.explain import gap_page as page
from gapless.explain import gap_verdict as verdict
from gapless.explain import show_gap as show
from gapless.gap import (
    Gap,
    Trace,
    experiment,
    experiment_page,
    experiment_verdict,
    measure,
    plain,
    plain_experiment,
    show_experiment,
)
from gapless.twin import Twin
from gapless.worlds import StandInSpec as Spec
from tests.gap.made import recorded
from tests.identify.test_page import EVIL, OFFLINE, TELL, WATCH
from tests.report.browser import browse, needs_browser

EXPLAINED = {
    "explained": 0.9,
    "mechanisms": [
        {
            "name": "gains.kp",
            "joints": ["elbow_flex", "wrist_flex", "wrist_roll"],
            "share": 0.62,
            "low": 0.55,
            "high": 0.70,
            "group": [],
            "parameters": {"gains.kp/elbow_flex": {"value": 14.0, "nominal": 20.0, "unit": "Nm/rad"}},
        },
        {"name": "latency.action", "share": 0.2, "low": 0.1, "high": 0.3, "group": ["gains.kd"], "parameters": {}},
        {"name": "armature.inertia", "share": -0.02, "low": -0.05, "high": 0.01, "group": [], "parameters": {}},
    ],
    "remainder": {
        "share": 0.1,
        "tolerances": 0.1,
        "kind": "explained",
        "where": ["elbow_flex at reversals: suggests play"],
        "map": {"elbow_flex": {"reversals": 3.2, "high load": None}, "wrist_flex": {"reversals": 0.9, "high load": 1.1}},
    },
    "task": [{"name": "latency.action", "loss": 0.3}, {"name": "gains.kp", "loss": 0.05}, {"name": "contact", "loss": 0.01}],
    "next": ["set kp to 14 Nm/rad", "move faster to tell latency from damping"],
    "robot": "arm",
    "provenance": {"model": {"source": "arm.xml", "sha256": "ab12"}, "log": ["one.npz 12cd"], "version": {"gapless": "0.1"}},
}


@pytest.fixture(scope="module")
def gap() -> Gap:
    twin = Twin.load("arm")
    logs = [recorded(Spec("arm", seed=s, change={"gains.kp/*": "x0.7"}), 6.0, seed=s)[1] for s in (0, 1)]
    return measure(twin, logs, twin.space.values({"latency.action": 0.005}))


@pytest.fixture(scope="module")
def summary(gap) -> dict:
    return {"verdict": "", **plain(gap), **copy.deepcopy(EXPLAINED)}


def hostile(data):
    """Every name and sentence replaced by an attack; figures stay."""
    if isinstance(data, dict):
        return {k: v if k in ("unit", "horizon", "from", "kind") else hostile(v) for k, v in data.items()}
    if isinstance(data, list):
        return [hostile(v) for v in data]
    return EVIL if isinstance(data, str) else data


def seen(file, profile, scheme: str) -> dict:
    """What a browser says about a page on a phone: in a frame 400 pixels wide, as a window has at least 500."""
    tell = TELL.replace("document.title", "parent.document.title").replace("faults,", "faults, wide: innerWidth,", 1)
    file.write_text(file.read_text().replace("<head>", "<head>" + WATCH, 1) + tell)
    phone = file.with_name("phone.html")
    phone.write_text(f'<title></title><iframe src="{file.name}" style="width: 400px; height: 900px; border: 0"></iframe>')
    flags = (f"--blink-settings=preferredColorScheme={scheme}", "--virtual-time-budget=60000", OFFLINE)
    dom = browse(phone.as_uri(), profile, *flags, "--allow-file-access-from-files", "--dump-dom")
    return json.loads(re.findall("<title>(.*?)</title>", dom)[0].replace("&amp;", "&"))


@needs_browser
@pytest.mark.parametrize(("scheme", "paper"), [("0", "rgb(22, 24, 27)"), ("1", "rgb(255, 255, 255)")])
def test_a_browser_draws_every_plot_by_day_and_by_night_and_runs_nothing_from_a_log(scheme, paper, gap, summary, tmp_path):
    attacked = hostile(summary)
    joint = gap.joints[0]
    attacked["error"]["joints"] = {EVIL if j == joint else j: v for j, v in attacked["error"]["joints"].items()}
    attacked["remainder"]["map"] = {EVIL: {EVIL: 1.0}}
    attacked["mechanisms"][0] |= {"group": [EVIL, EVIL], "parameters": {EVIL: {"value": 1.0, "nominal": 2.0, "unit": EVIL}}}
    traces = [dataclasses.replace(t, name=EVIL, joints=(EVIL, *t.joints[1:])) for t in gap.traces]
    file = tmp_path / "report.html"
    page(attacked, traces, file)
    assert file.stat().st_size < 8e6
    said = seen(file, tmp_path / "profile", scheme)
    plots = 2 + 2 * len(gap.joints)
    assert said.pop("svg") >= 2 * plots  # plotly draws each figure in at least two layers
    nothing = {"faults": [], "asked": [], "sideways": False, "evil": False, "images": 0, "links": 0}
    assert said == nothing | {"drawn": "all", "plots": plots, "paper": paper, "wide": 400}
    assert "49" not in file.read_text().split("<h1>")[1].split("</h1>")[0]


def test_the_page_says_how_far_why_and_what_next(gap, summary, tmp_path):
    page(summary, gap.traces, tmp_path / "report.html")
    body = (tmp_path / "report.html").read_text().split("<body>")[1]
    for words in (
        "The model is",
        "Because of gains.kp of elbow_flex, wrist_flex and 1 more (62 %), then latency.action or gains.kd (20 %).",
        "1. set kp to 14 Nm/rad",
        "noise floor",
        "last state held",
        "elbow_flex at reversals: suggests play",
        "1. latency.action",
        "20 % (2.)",
        "ab12",
        "12cd",
        "Distribution of states",
    ):
        assert words in body, words
    order = [
        body.index(h) for h in ("What to do next", "Why, and how far", "A typical stretch", "The worst stretch", "Made from")
    ]
    assert order == sorted(order)


def test_the_verdict_fits_the_figures(summary):
    said = verdict(summary).text
    degrees = np.degrees(summary["error"]["value"])
    assert f"{degrees:.2g} deg off over whole logs" in said
    assert f"{summary['error']['value'] / summary['noise_floor']['value']:.2g} times" in said
    beaten = copy.deepcopy(summary)
    beaten["baselines"]["delay"]["free"] = 0.5 * summary["error"]["value"]
    assert f"The command, late, without any model, is closer ({degrees / 2:.2g} deg)." in verdict(beaten).text
    none = copy.deepcopy(summary)
    none["remainder"]["kind"], none["mechanisms"] = "none", []
    assert verdict(none).good
    assert verdict(none).text.startswith("No gap above noise and tolerances")
    unknown = copy.deepcopy(summary)
    unknown["remainder"] |= {"kind": "non-parametric", "share": 0.71}
    assert "71 % of it no parameter explains" in verdict(unknown).text
    broken = copy.deepcopy(summary)
    broken["error"] |= {"value": None, "broken": 3, "windows": 14}
    assert verdict(broken).text == "The model's physics breaks in 3 of 14 replays, so it predicts nothing."
    assert not any(verdict(v).good for v in (summary, beaten, unknown, broken))


def test_the_terminal_has_the_same_picture(summary):
    for width in (80, 120):
        console = Console(width=width, file=io.StringIO())
        show(summary, console)
        out = console.file.getvalue()
        assert max(len(line) for line in out.splitlines()) <= width
        for words in ("62 %  (55 to 70)", "0.3 (1.)", "█", "┤", "whole log", "noise floor", "1.  set kp to 14 Nm/rad", "[deg]"):
            assert words in out, words
    rows = [line for line in out.splitlines() if line.startswith(("1 sample", "whole log"))]
    assert rows[0].index("●") < rows[1].index("●")  # errors grow to the right


def test_a_page_is_made_of_little_and_of_much(summary, tmp_path):
    little = copy.deepcopy(summary)
    little |= {"mechanisms": [], "remainder": {}, "task": [], "next": [], "provenance": {}}
    little["error"]["distribution"] = None
    page(little, [], tmp_path / "little.html")
    n, joints = 60_000, tuple(f"joint_{i}" for i in range(30))
    noise = np.random.default_rng(0).standard_normal((n, len(joints)))
    much = Trace("long", joints, np.arange(n) / 500, *[noise] * 6, np.zeros(n), np.arange(n) // 1500)
    large = copy.deepcopy(summary)
    large["error"]["joints"] = {j: {"value": 0.1, "relative": 0.2, "unit": "rad"} for j in joints}
    page(large, [much] * 3, tmp_path / "much.html")
    assert (tmp_path / "much.html").stat().st_size < 8e6


@needs_browser
def test_a_browser_draws_how_runs_part(tmp_path):
    logs = [recorded(Spec("arm", seed=s, sensors={"noise_q": 0.001}), 6.0)[1] for s in (0, 0)]
    found = plain_experiment(experiment(logs, Twin.load("arm")))
    summary = {"verdict": experiment_verdict(found).text, **found, "provenance": {"log": [EVIL]}}
    experiment_page(summary, tmp_path / "report.html")
    said = seen(tmp_path / "report.html", tmp_path / "profile", "1")
    assert said["faults"] == said["asked"] == []
    assert (said["drawn"], said["plots"], said["evil"], said["sideways"]) == ("all", 2, False, False)
    assert "Told the same again, the robot differs from itself" in summary["verdict"]
    console = Console(width=100, file=io.StringIO())
    show_experiment(summary, console)
    assert "twin beside robot" in console.file.getvalue()
