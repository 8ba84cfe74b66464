"""The report of a diagnosis: verdict, causes, horizons and stretches, drawn by a real browser without a network."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from gapless.explain import Diagnosis
from gapless.explain.causes import Cause, Explanation, Number
from gapless.explain.remainder import Remainder
from gapless.gap import experiment, measure
from gapless.measure import Trace
from gapless.twin import Origin, Twin
from gapless.worlds import StandInSpec as Spec
from tests.identify.test_page import EVIL, OFFLINE, TELL, WATCH
from tests.measure.made import recorded
from tests.report.browser import browse, needs_browser

JOINTS = ("elbow_flex", "wrist_flex", "wrist_roll")
PARAMETERS = {"gains.kp/elbow_flex": Number(14.0, 20.0, "N m/rad")}
EXPLAINED = Explanation(
    verdict="explained",
    mechanisms=[
        Cause("gains.kp", JOINTS, 0.62, 0.55, 0.70, (), PARAMETERS, "set kp to 14 N m/rad"),
        Cause("latency.action", (), 0.2, 0.1, 0.3, ("gains.kd",), {}, ""),
        Cause("armature.inertia", (), -0.02, -0.05, 0.01, (), {}, ""),
    ],
    tolerances=0.1,
    remainder=Remainder(0.1, 2.0, ["elbow_flex at reversals: suggests play"], {}, {}),
    next=["set kp to 14 N m/rad", "move faster to tell latency from damping"],
    task={"latency.action": 0.3, "gains.kp": 0.05, "contact": 0.01},
    error=0.02,
    floor=0.001,
    rivals=[("gains.kp", 2.0)],
    limits=[],
    seconds=1.0,
    seconds_used=12.0,
    seconds_given=60.0,
)
PHASES = {"elbow_flex": {"reversals": 3.2, "high load": None}, "wrist_flex": {"reversals": 0.9, "high load": 1.1}}


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    twin = Twin.load("arm")
    logs = [recorded(Spec("arm", seed=s, change={"gains.kp/*": "x0.7"}), 6.0, seed=s)[1] for s in (0, 1)]
    gap = measure(twin, logs, twin.space.values({"latency.action": 0.005}))
    origin = Origin("arm.xml", ("one.npz",), {"arm.xml": "ab12", "one.npz": "12cd"}, {"gapless": "0.1"})
    return Diagnosis(replace(gap, origin=origin), EXPLAINED, PHASES)


def hostile(found: Diagnosis) -> Diagnosis:
    """Names and sentences replaced by an attack; figures stay."""
    gap, q = found.gap, found.gap["q"]
    columns = (EVIL, *q.columns[1:])
    errors = gap.errors | {"q": replace(q, columns=columns), "dq": replace(gap["dq"], columns=columns)}
    traces = [replace(t, name=EVIL, joints=columns) for t in gap.traces]
    origin = Origin(EVIL, (EVIL,), {EVIL: EVIL}, {EVIL: EVIL})
    cause = Cause(EVIL, (EVIL,), 0.6, 0.5, 0.7, (EVIL, EVIL), {EVIL: Number(1.0, 2.0, EVIL)}, EVIL)
    why = replace(
        EXPLAINED, mechanisms=[cause], remainder=Remainder(0.1, 2.0, [EVIL]), next=[EVIL], task={EVIL: 1.0}, rivals=[]
    )
    return Diagnosis(replace(gap, robot=EVIL, errors=errors, traces=traces, origin=origin), why, {EVIL: {EVIL: 1.0}})


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
def test_a_browser_draws_every_plot_by_day_and_by_night_and_runs_nothing_from_a_log(scheme, paper, found, tmp_path):
    file = tmp_path / "report.html"
    hostile(found).page(file)
    assert file.stat().st_size < 8e6
    said = seen(file, tmp_path / "profile", scheme)
    plots = 2 + 2 * len(found.gap.joints)
    assert said.pop("svg") >= 2 * plots  # plotly draws each figure in at least two layers
    nothing = {"faults": [], "asked": [], "sideways": False, "evil": False, "images": 0, "links": 0}
    assert said == nothing | {"drawn": "all", "plots": plots, "paper": paper, "wide": 400}
    assert "49" not in file.read_text().split("<h1>")[1].split("</h1>")[0]


def test_the_page_says_how_far_why_and_what_next(found, tmp_path):
    found.page(tmp_path / "report.html")
    body = (tmp_path / "report.html").read_text().split("<body>")[1]
    for words in (
        "The model is",
        "Because of gains.kp of elbow_flex, wrist_flex and 1 more (62 %), then latency.action or gains.kd (20 %).",
        "1. set kp to 14 N m/rad",
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


def test_the_verdict_fits_the_figures(found):
    gap = found.gap
    error, noise = gap.mean("given"), gap.over_joints(gap["q"].noise)
    assert f"{np.degrees(error):.2g} deg off over whole logs" in found.verdict().text
    assert f"{error / noise:.2g} times" in found.verdict().text
    sizes = gap["q"].size | {"delay": 0.5 * gap["q"].size["given"]}
    beaten = replace(found, gap=replace(gap, errors=gap.errors | {"q": replace(gap["q"], size=sizes)}))
    closer = f"The command, late, without any model, is closer ({np.degrees(error) / 2:.2g} deg)."
    assert closer in beaten.verdict().text
    none = replace(found, explanation=replace(EXPLAINED, verdict="none", mechanisms=[]))
    assert none.verdict().good
    assert none.verdict().text.startswith("No gap above noise and tolerances")
    unknown = replace(found, explanation=replace(EXPLAINED, verdict="non-parametric", remainder=Remainder(0.71, 9.0)))
    assert "71 % of it no parameter explains" in unknown.verdict().text
    sizes = gap["q"].size | {"given": np.full_like(gap["q"].size["given"], np.inf)}
    broken = replace(gap, errors=gap.errors | {"q": replace(gap["q"], size=sizes)}, broken=3, windows=14)
    broken = replace(found, gap=broken)
    assert broken.verdict().text == "The model's physics breaks in 3 of 14 replays, so it predicts nothing."
    assert not any(d.verdict().good for d in (found, beaten, unknown, broken))


def test_the_terminal_has_the_same_picture(found):
    for width in (80, 120):
        console = Console(width=width, file=io.StringIO())
        console.print(found)
        out = console.file.getvalue()
        assert max(len(line) for line in out.splitlines()) <= width
        for words in (
            "62 %  (55 to 70)",
            "0.3 (1.)",
            "█",
            "┤",
            "whole log",
            "noise floor",
            "1.  set kp to 14 N m/rad",
            "[deg]",
        ):
            assert words in out, words
    rows = [line for line in out.splitlines() if line.startswith(("1 sample", "whole log"))]
    first, whole = (min(row.index(mark) for mark in "●▲" if mark in row) for row in rows)
    assert first < whole  # errors grow to the right


def test_a_diagnosis_comes_back_from_its_folder(found, tmp_path):
    found.save(tmp_path)
    back = Diagnosis.load(tmp_path)
    assert back.json() == found.json() == json.loads((tmp_path / "gap.json").read_text())
    assert str(back) == str(found)
    assert back.explanation.mechanisms == EXPLAINED.mechanisms
    np.testing.assert_allclose(back.gap["q"].of("given", "0.5"), found.gap["q"].of("given", "0.5"))
    back.page(tmp_path / "again.html")  # without traces: no curves
    found.gap.page(tmp_path / "gap.html")  # a gap that nobody explained has a page too
    assert "how far: error" in str(found.gap)


def test_a_page_is_made_of_little_and_of_much(found, tmp_path):
    empty = replace(EXPLAINED, mechanisms=[], remainder=Remainder(np.nan, np.nan), task={}, next=[])
    Diagnosis(replace(found.gap, traces=()), empty, {}).page(tmp_path / "little.html")
    n, joints = 60_000, tuple(f"joint_{i}" for i in range(30))
    noise = np.random.default_rng(0).standard_normal((n, len(joints)))
    much = Trace("long", joints, np.arange(n) / 500, *[noise] * 8, np.zeros(n), np.arange(n) // 1500, np.arange(n) // 1000)
    q = found.gap["q"]
    wide = {p: np.repeat(v[:, :1], 30, axis=1) for p, v in q.size.items()}
    floor = replace(q.floor, columns=joints, size=np.full(30, 1e-3), repeated=np.zeros(30))
    q = replace(q, columns=joints, units=("rad",) * 30, size=wide, moves=np.ones(30), floor=floor)
    large = replace(found.gap, errors={"q": q}, traces=(much,) * 3, joints=joints)
    replace(found, gap=large).page(tmp_path / "much.html")
    assert (tmp_path / "much.html").stat().st_size < 8e6


def test_runs_that_part_are_told_in_a_sentence_and_come_back_from_their_folder(tmp_path):
    logs = [recorded(Spec("arm", seed=s, sensors={"noise_q": 0.001}), 6.0)[1] for s in (0, 0)]
    told = experiment(logs, Twin.load("arm"))
    assert "Given the same commands again, the robot differs from itself" in told.verdict().text
    assert "twin beside robot" in str(told)
    told.save(tmp_path)
    back = type(told).load(tmp_path)
    assert back.json() == told.json()
    assert str(back) == str(told)


@needs_browser
def test_a_browser_draws_how_runs_part(tmp_path):
    logs = [recorded(Spec("arm", seed=s, sensors={"noise_q": 0.001}), 6.0)[1] for s in (0, 0)]
    told = replace(experiment(logs, Twin.load("arm")), origin=Origin("", (EVIL,), {}, {}))
    told.page(tmp_path / "report.html")
    said = seen(tmp_path / "report.html", tmp_path / "profile", "1")
    assert said["faults"] == said["asked"] == []
    assert (said["drawn"], said["plots"], said["evil"], said["sideways"]) == ("all", 2, False, False)
