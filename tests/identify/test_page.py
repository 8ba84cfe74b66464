"""The report of a fit: a verdict in words, whole in one small file, and drawn by a real browser without a network."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from gapless.identify.per_joint.ladder import Rung
from gapless.identify.result import Estimate, Fit
from gapless.identify.score import Scores
from gapless.identify.uncertainty import Unknown
from gapless.identify.warming import warming
from gapless.measure import Trace
from gapless.twin import Origin, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, plan_motion as plan, record, replay
from tests.report.browser import browse, needs_browser

FIT = Fit(
    robot="arm",
    parameters={
        "latency.action": Estimate(0.01, 0.008, 0.012, 0.0, "s", (), True, False),
        "gains.kp/elbow": Estimate(17.4, 17.0, 17.9, 20.0, "N m/rad", (), True, False),
        "gains.kd/elbow": Estimate(0.4, 0.01, 9.0, 1.0, "N m s/rad", (), False, False),
        "gains.kd/wrist": Estimate(5.0, 5.0, 5.0, 1.0, "N m s/rad", (), True, True),
    },
    fixed={},
    ladder=[
        Rung("as given", 0.0138, 0.0, 0.0, True),
        Rung("+ friction", 0.0137, 0.01, 0.003, True),
        Rung("+ friction with load", 0.0137, 0.001, 0.003, False),
    ],
    train=Scores(0.09, 0.04, 0.013, 0.0019),
    heldout=Scores(0.0977, 0.041, 0.01466, 0.002094),
    undetermined=[Unknown(("gains.kd",), "nothing moved fast")],
    limits=[],
    against=[],
    suspicions=[],
    warnings=[],
    zeros={},
    pose=dict.fromkeys(Twin.load("arm").joints, 0.0),
    seconds=12.3,
    seconds_used=20.0,
    seconds_given=60.0,
    origin=Origin("arm.xml", ("one.npz", "two.npz"), {"arm.xml": "ab12"}, {"gapless": "0.1.0"}),
    twin=None,
    values=np.zeros(0),
    halves=np.zeros((2, 0)),
    belief=None,
    traces=[],
)
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
                given=r.replayed["q"][0, 0],
                twin=r.replayed["q"][1, 0],
                heldout=r.replayed["q"][1, 0],
                dq=np.gradient(q, time, axis=0),
                load=5 * (r.command[0] - q),
                shock=np.full(len(time), np.nan),
                window=4 * seed + (time // 2).astype(np.int64),
                block=4 * seed + (time // 2).astype(np.int64),
            )
        )
    return out


def warmed(made: list[Trace]) -> list[Trace]:
    return [replace(t, temperature=np.full(t.measured.shape, 30.0) + t.time[:, None]) for t in made]


@needs_browser
@pytest.mark.parametrize(("scheme", "paper"), [("0", "rgb(22, 24, 27)"), ("1", "rgb(255, 255, 255)")])
def test_a_browser_draws_every_plot_by_day_and_by_night_and_runs_nothing_from_a_log(scheme, paper, tmp_path):
    made = [replace(t, joints=(EVIL, *t.joints[1:])) for t in traces(("one", EVIL))]
    attacked = replace(
        FIT,
        robot=EVIL,
        parameters=FIT.parameters | {f"gains.kp/{EVIL}": replace(FIT.parameters["gains.kp/elbow"], unit=EVIL)},
        undetermined=[Unknown((EVIL,), EVIL)],
        ladder=[replace(r, name=EVIL) for r in FIT.ladder],
        warnings=[EVIL],
        pose=dict.fromkeys(made[0].joints, 0.0),
        origin=Origin(EVIL, (EVIL,), {EVIL: EVIL}, {EVIL: EVIL}),
        traces=warmed(made),
    )
    file = tmp_path / "fit.html"
    attacked.page(file)
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
    made = traces()
    replace(FIT, traces=warmed(made)).page(tmp_path / "fit.html")
    body = (tmp_path / "fit.html").read_text().split("<body>")[1]
    for words in (
        "Held-out error fell from 0.84 to 0.12 deg (by a factor of 7.0); a pure delay leaves 2.35, the command alone 5.6.",
        "not determined by these logs",
        "at a bound: do not rely on it",
        "0.01 to 9",
        "nothing moved fast",
        "added",
        "not needed",
        "arm.xml ab12",
        "Residual against angle",
        "Residual against velocity",
        "Residual against load",
        "Residual against time",
        "Residual against temperature",
    ):
        assert words in body, words
    replace(FIT, traces=made).page(tmp_path / "cold.html")
    assert "against temperature" not in (tmp_path / "cold.html").read_text().split("<body>")[1]


@needs_browser
def test_the_first_screen_of_a_phone_says_before_after_baselines_trust_and_what_is_not_known(tmp_path):
    """400 px wide, in a frame: no window of the browser itself is that narrow."""
    replace(FIT, warnings=["encoder zeros differ"], traces=traces()).page(tmp_path / "fit.html")
    where = "[...document.querySelectorAll('p.verdict, h2, .main-svg')]"
    tell = f"""<script>const wait = setInterval(() => {{ if (document.body.dataset.drawn) {{ clearInterval(wait);
      const told = (e) => [e.tagName, e.textContent, e.getBoundingClientRect().bottom, e.getBoundingClientRect().right];
      parent.document.title = JSON.stringify({{ wide: document.documentElement.scrollWidth, all: {where}.map(told) }});
      }} }}, 50)</script>"""
    inside = tmp_path / "inside.html"
    inside.write_text((tmp_path / "fit.html").read_text() + tell)
    frame = tmp_path / "frame.html"
    frame.write_text(f'<iframe src="{inside.name}" width="400" height="850" style="border: 0"></iframe>')
    flags = ("--allow-file-access-from-files", "--virtual-time-budget=60000", OFFLINE, "--window-size=600,900", "--dump-dom")
    dom = browse(frame.as_uri(), tmp_path / "profile", *flags)
    said = json.loads(html.unescape(re.findall("<title>(.*?)</title>", dom, re.S)[0]))
    assert said["wide"] <= 400
    texts = {text: bottom for tag, text, bottom, _ in said["all"] if tag != "svg"}
    (verdict_text,) = [t for t in texts if t.startswith("Held-out error fell")]
    for words in (
        "from 0.84 to 0.12 deg",
        "delay leaves 2.35",
        "command alone 5.6",
        "use it, but",
        "do not determine 1 of 4 parameters",
    ):
        assert words in verdict_text
    assert texts[verdict_text] < 400
    bars = min(bottom for tag, _, bottom, _ in said["all"] if tag == "svg")
    assert bars < 850
    assert all(right <= 400 for tag, _, _, right in said["all"] if tag == "svg")


def test_a_fit_that_is_not_to_be_trusted_says_so_first():
    bad = replace(FIT, against=["the command alone is better."], warnings=["one log was left out"]).verdict()
    assert bad.text.startswith("Do not use it: the command alone is better. Held-out")
    assert not bad.good
    doubtful = replace(FIT, suspicions=["a leg is heavier", "a cable pulls"]).verdict()
    assert doubtful.text.startswith("It predicts, but do not trust its numbers: a leg is heavier (1 more below). Held-out")
    assert not doubtful.good
    assert FIT.verdict().good
    worse = replace(FIT, heldout=Scores(np.nan, 0.041, 0.01466, 0.02)).verdict()
    assert "did not fall" in worse.text
    assert "the command alone" not in worse.text
    assert "nothing is known" in replace(FIT, heldout=Scores(*[np.nan] * 4)).verdict().text


def test_errors_are_those_of_held_out_predictions_and_missing_ones_do_not_count(tmp_path):
    n = 100
    flat = np.zeros((n, 1))
    heldout = np.full((n, 1), np.radians(2.0))
    heldout[60] = np.nan
    number = np.zeros(n, dtype=np.int64)
    columns = (flat, flat + np.nan, flat, flat + np.radians(8), flat, heldout, flat, flat, flat[:, 0])
    t = Trace("log", ("a",), np.arange(n) / 10, *columns, number, number)
    replace(FIT, traces=[t], pose={"a": 0.0}).page(tmp_path / "fit.html")
    body = (tmp_path / "fit.html").read_text().split("<body>")[1]
    cells = re.findall("<td[^>]*>(.*?)</td>", body.split("By joint")[1])[:6]
    assert cells == ["a", "–", "0", "8", "2", "4.0"]


def test_logs_of_the_same_file_name_are_told_apart(tmp_path):
    replace(FIT, traces=traces(("monday/log.npz", "tuesday/log.npz"), 4.0)).page(tmp_path / "fit.html")
    assert "tuesday/log.npz" in (tmp_path / "fit.html").read_text().split("<body>")[1]


def test_a_page_is_made_of_little_and_of_much(tmp_path):
    little = replace(FIT, robot="", parameters={}, ladder=[], undetermined=[], pose={}, heldout=Scores(*[np.nan] * 4))
    little.page(tmp_path / "empty.html")
    assert "a robot" in (tmp_path / "empty.html").read_text()
    rng = np.random.default_rng(0)
    n, joints = 60_000, tuple(f"joint_{i}" for i in range(30))
    noise = rng.standard_normal((n, len(joints)))
    number = np.arange(n) // 1000
    much = Trace("long", joints, np.arange(n) / 500, *[noise] * 8, noise[:, 0], number, number, noise)
    replace(FIT, traces=[much] * 3, pose=dict.fromkeys(joints, 0.0)).page(tmp_path / "much.html")
    assert (tmp_path / "much.html").stat().st_size < 8e6


def simulated(rng: np.random.Generator, slope: float, memory: float, speed: float = 0.0) -> dict[str, np.ndarray]:
    """60 stretches of a drive that warms up, in which the error's size wanders; it grows with temperature, and with speed."""
    warm = 30 + np.round(np.cumsum(rng.normal(0.3, 0.3, 60)))
    wander = np.zeros(60)
    for i in range(1, 60):
        wander[i] = memory * wander[i - 1] + rng.normal() * np.sqrt(1 - memory**2)
    fast = np.exp(speed * (warm - 30) + 0.1 * rng.normal(size=60))
    size = fast * np.exp(0.3 * wander + slope * (warm - 30))
    each = {"temperature": warm, "speed": fast, "stretch": np.arange(60)}
    return {k: np.repeat(v, 20) for k, v in each.items()} | {"error": np.repeat(size, 20) * rng.normal(size=1200)}


def test_error_that_grows_with_temperature_is_found_where_there_is_one_and_seldom_where_there_is_none():
    rng = np.random.default_rng(0)
    assert sum(warming(**simulated(rng, 0.1, 0.3)) is not None for _ in range(50)) >= 45
    for memory in (0.0, 0.5):
        assert sum(warming(**simulated(rng, 0.0, memory)) is not None for _ in range(200)) <= 8
    # what is faster as it warms up is worse for that reason
    assert sum(warming(**simulated(rng, 0.0, 0.3, speed=0.1)) is not None for _ in range(100)) <= 4


def test_warming_says_from_where_to_where():
    warm = np.repeat(np.linspace(30, 50, 30), 20)
    rng = np.random.default_rng(1)
    error = 0.01 * (warm / 30) ** 2 * rng.normal(size=600)
    found = warming(error, warm, rng.uniform(0.5, 1, 600), np.repeat(np.arange(30), 20))
    assert found is not None
    assert found.cold == pytest.approx(33.1, abs=0.2)
    assert found.hot == pytest.approx(46.9, abs=0.2)
    assert found.cold_error == pytest.approx(0.0122, rel=0.15)
    assert found.hot_error == pytest.approx(0.0244, rel=0.15)
    assert warming(error[:120], warm[:120], warm[:120], np.arange(120) // 20) is None  # six stretches say nothing


def test_a_joint_that_gets_worse_as_it_warms_up_is_named(tmp_path):
    (t,) = traces(("one",), 30.0)
    t = replace(t, block=(t.time // 1).astype(np.int64))
    size = np.radians(0.02) * np.exp(t.time / 10)
    off = size[:, None] * np.random.default_rng(0).normal(size=t.measured.shape)
    replace(FIT, traces=warmed([replace(t, heldout=t.measured + off)])).page(tmp_path / "fit.html")
    body = (tmp_path / "fit.html").read_text().split("<body>")[1]
    assert f"{t.joints[0]}: the error grows with temperature" in body
