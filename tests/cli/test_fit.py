"""`gapless fit`: a folder with a twin that any MuJoCo program loads, a belief and the figures; and what bad input gives."""

import json
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import gapless.identify
from gapless.cli import main
from gapless.errors import BadInput
from gapless.logs import Log, write
from gapless.twin import Friction, load_belief as load, load_recipe
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record

KP = 0.7  # of the nominal gain: the stand-in's secret
MODELS = Path(gapless.identify.__file__).parents[1] / "robots/models"


def recorded(robot: str, seconds: float, seed: int = 0, kp: float = KP) -> Log:
    change = {"gains.kp/*": f"x{kp}", "friction.coulomb/*": "x2"}
    spec = Spec(robot, tolerance=0, change=change, sensors={"noise_q": 0.0003})
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", build(spec), seconds, np.random.default_rng(seed)), stand_in.signal)


@pytest.fixture(scope="module")
def bench() -> Log:
    return recorded("bench", 12.0)


@pytest.fixture(scope="module")
def arm() -> Log:
    return recorded("arm", 6.0)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def wrote(name: str, log: Log, **signals: np.ndarray) -> str:
    """A log with some signals replaced, in a file."""
    kept = {k: np.array(s.values) for k, s in log.signals.items() if k in ("q", "q_cmd")}
    write(Log.from_arrays(log.joints, log["q"].time, kept | signals), name)
    return name


def somewhere(argv) -> list[str]:
    """The arguments with a folder for the results, unless they name one or need none."""
    return [*argv] if {"--out", "--compare"} & {*argv} or not argv else [*argv, "--out", "fit", "--overwrite"]


def fitted(capsys, *argv: str) -> dict:
    capsys.readouterr()
    main(["fit", *somewhere(argv), "--json"])
    return json.loads(capsys.readouterr().out)


def refused(capsys, *argv: str, code: int = 2) -> str:
    """The one sentence on stderr, with an exit code."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["fit", *somewhere(argv)])
    assert caught.value.code == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("gapless: ")
    assert "\n" not in said.err.strip()
    return said.err


def test_a_fit_leaves_a_twin_a_belief_and_its_figures(bench, capsys, tmp_path):
    printed = fitted(capsys, "bench", wrote("log.npz", bench), "--out", "fitted")
    assert set(printed) >= {"verdict", "parameters", "undetermined", "heldout", "train", "ladder", "seconds", "origin"}
    assert set(printed["heldout"]) == {"command", "delay", "given", "fit"}
    assert printed["heldout"]["fit"] < 0.3 * printed["heldout"]["given"]
    assert json.loads(Path("fitted/fit.json").read_text()) == printed
    assert any("scale" in u["meaning"] for u in printed["undetermined"])
    assert sorted(p.name for p in (tmp_path / "fitted").iterdir()) == [
        "belief.json",
        "fit.json",
        "progress.json",
        "report.html",
        "twin.xml",
    ]
    assert mujoco.MjModel.from_xml_path("fitted/twin.xml").nu == 1
    twin = load_recipe("bench", "fitted/belief.json")
    twin.accepts(load("fitted/belief.json").space)
    assert Friction(full=True) in twin.mechanisms


def test_what_was_fitted_is_what_a_policy_is_trained_and_judged_in_and_a_log_is_replayed_with(bench, capsys):
    log = wrote("log.npz", bench.slice(0, 6))
    errors = fitted(capsys, "bench", log, "--out", "fitted")["heldout"]
    main(["replay", "bench", log, "--belief", "fitted/belief.json", "--window", "0.5", "--json"])
    replayed = json.loads(capsys.readouterr().out)
    assert max(replayed["rmse"]["q"].values()) < 0.5 * errors["given"]
    small = ("--iterations", "1", "--worlds", "4", "--threads", "1", "--json")
    main(["train", "swing", "--robot", "bench", "--belief", "fitted/belief.json", "--out", "run", *small])
    assert json.loads(capsys.readouterr().out)["iterations"] == 1
    for preset in ("narrow", "wide", "none"):
        code = 0
        try:
            main(["course", "run", "--preset", preset, "--draws", "1", "--threads", "1", "--json"])
        except SystemExit as end:  # one iteration may teach nothing
            code = end.code
        judged = json.loads(capsys.readouterr().out)
        assert code == (0 if judged["good"] else 1) and "success" in judged


def test_a_person_reads_before_after_baselines_trust_and_what_is_not_known(bench, capsys):
    main(["fit", "bench", wrote("log.npz", bench.slice(0, 6)), "--out", "fit"])
    printed = capsys.readouterr()
    said = re.sub(r"\s+", " ", printed.out)
    assert "report.html are in fit" in printed.err
    for words in (
        "held out",
        "command",
        "best delay",
        "as given",
        "fitted",
        "Held-out error fell from",
        "not known",
    ):
        assert words in said


def test_a_fit_goes_on_where_it_was_stopped(bench, capsys):
    log = wrote("log.npz", bench)
    first = fitted(capsys, "bench", log, "--out", "first")
    again = fitted(capsys, "bench", log, "--out", "first", "--resume")
    assert again["parameters"] == first["parameters"]
    assert again["seconds"] < first["seconds"]
    assert "other logs" in refused(capsys, "bench", log, "--out", "first", "--resume", "--kp", "3")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("benc", "log.npz"), "unknown robot"),
        (("bench", "log.npz", "--fix", "gains.kq/*=3"), "did you mean 'gains.kp/servo'"),
        (("bench", "log.npz", "--fix", "gains.kp/*=1e9"), "bounds"),
        (("bench", "log.npz", "--fix", "gains.kp/*=inf"), "bounds"),
        (("bench", "log.npz", "--fix", "gains.kp/*"), "NAME=NUMBER"),
        (("bench", "log.npz", "--fix", "=3"), "NAME=NUMBER"),
        (
            ("bench", "log.npz", "--fix", "gains.kp/*=3", "gains.kp/servo=5"),
            "is given two values, 3 (gains.kp/*) and 5 (gains.kp/servo)",
        ),
        (("bench", "log.npz", "--fix", "gains.kp/servo=3", "--fix", "gains.kp/servo=5"), "two values, 3"),
        (("bench", "log.npz", "--kp", "12", "--fix", "gains.kp/*=13"), "two values, 12 (--kp) and 13 (gains.kp/*)"),
        (("bench", "log.npz", "--resume", "--out", "nowhere"), "nothing to resume"),
        (("bench",), "name at least one log"),
        (("bench", "log.npz", "mistyped.npz"), "mistyped.npz"),
        (("quadruped", "log.npz"), "has a free base, but the log has no orientation (signal quat)"),
        (("rover", "log.npz"), "free base"),
    ],
)
def test_what_contradicts_itself_or_does_not_exist_is_refused(argv, sentence, bench, capsys):
    wrote("log.npz", bench)
    assert sentence in refused(capsys, *argv)
    assert not Path("nowhere").exists()


def test_a_joint_of_another_name_is_named_beside_those_that_are_there_and_commands_are_needed(arm, capsys):
    other = [j if j != "elbow_flex" else "elbow" for j in arm.joints]
    write(Log.from_arrays(other, arm["q"].time, {k: arm[k].values for k in ("q", "q_cmd")}), "other.npz")
    said = refused(capsys, "arm", "other.npz")
    assert "no q of elbow_flex" in said
    assert "shoulder_pan, shoulder_lift, elbow, wrist_flex, wrist_roll, gripper" in said
    write(Log.from_arrays(arm.joints, arm["q"].time, {"q": arm["q"].values}), "mute.npz")
    assert "no q_cmd" in refused(capsys, "arm", "mute.npz")


def test_a_log_without_motion_or_too_short_is_refused(bench, capsys):
    still = np.zeros(bench["q"].values.shape)
    assert "no joint moves" in refused(capsys, "bench", wrote("still.npz", bench, q=still, q_cmd=still))
    assert "record at least 4 s" in refused(capsys, "bench", wrote("short.npz", bench.slice(0, 3)))


def test_a_joint_that_its_command_does_not_reach_is_named_with_what_to_check(arm, capsys):
    j = arm.joints.index("wrist_flex")
    q = np.array(arm["q"].values)
    noise = np.random.default_rng(0).normal(0, 0.0003, len(q))
    dead, wanders, swapped, mirrored = (q.copy() for _ in range(4))
    dead[:, j] = 0.5 + noise
    wanders[:, j] = 0.5 + 0.2 * np.sin(11 * arm["q"].time) + noise
    swapped[:, [j, j + 1]] = q[:, [j + 1, j]]
    mirrored[:, j] = -q[:, j]
    for name, values, words in (
        ("dead.npz", dead, ("is told to move by", "enabled", "wired", "swapped")),
        ("wanders.npz", wanders, ("not as it is told", "enabled", "wired", "swapped")),
        ("swapped.npz", swapped, ("follows the command of wrist_roll",)),
        ("mirrored.npz", mirrored, ("mirrors its command",)),
    ):
        said = refused(capsys, "arm", wrote(name, arm, q=values))
        for word in (name, "wrist_flex", *words):
            assert word in said


def test_positions_that_the_model_does_not_allow_are_told_with_both_ranges_and_a_guess(arm, capsys):
    def shifted(change):
        out = {}
        for signal in ("q", "q_cmd"):
            values = np.array(arm[signal].values)
            values[:, 2] = change(values[:, 2])  # elbow_flex: about 0.25 to 0.95 rad, allowed -1.69 to 1.69
            out[signal] = values
        return out

    for change, guess in ((np.degrees, "degrees"), (lambda q: q + np.pi, "encoder's zero")):
        said = refused(capsys, "arm", wrote("off.npz", arm, **shifted(change)))
        assert "elbow_flex was measured at" in said
        assert "allows -1.69 to 1.69" in said
        assert guess in said


def test_a_model_that_cannot_stand_the_measured_state_is_refused(bench, capsys):
    text = (MODELS / "bench.xml").read_text()
    solid = text.replace(
        'fromto="0 0.010 0 0 -0.002 0" size="0.011"', 'fromto="0 0.030 0 0 -0.002 0" size="0.011" conaffinity="2"'
    )
    solid = solid.replace('pos="0 0.0285 0.270"', 'pos="0 0.0285 0.270" contype="2"')
    Path("solid.xml").write_text(solid)
    said = refused(capsys, "solid.xml", wrote("log.npz", bench))
    assert "arm and world" in said
    assert "inside each other" in said
    stiff = text.replace('kp="17.8"', 'kp="9e6"').replace("implicitfast", "Euler").replace("-2.94 2.94", "-1e9 1e9")
    Path("stiff.xml").write_text(stiff.replace('armature="0.028"', 'armature="1e-5"'))
    said = refused(capsys, "stiff.xml", "log.npz", code=1)  # which is no bad input
    for words in (
        "breaks within 1 s",
        "became infinite or undefined",
        "s after the start",
        "servo was measured at",
        "allows -3.14 to 3.14",
        "sign and unit",
    ):
        assert words in said


@pytest.mark.parametrize("ending", ["npz", "csv", "mcap"])
def test_a_truncated_file_is_refused_by_name(ending, bench, capsys):
    file = Path(wrote(f"cut.{ending}", bench))
    whole = file.read_bytes()
    # a table that ends with a whole row is a shorter table: cut within one, wherever the half is on this machine
    file.write_bytes(whole[: whole.rindex(b",", 0, len(whole) // 2)] if ending == "csv" else whole[: len(whole) // 2])
    assert file.name in refused(capsys, "bench", file.name)


@pytest.mark.parametrize("damage", ["missing", "garbled"])
def test_of_a_log_that_is_half_damaged_the_sound_half_is_fitted_and_it_says_so(damage, bench, capsys):
    half, rng = bench["q"].time > 6.3, np.random.default_rng(0)
    signals = {}
    for name in ("q", "q_cmd"):
        signals[name] = np.array(bench[name].values)
        signals[name][half] = np.nan if damage == "missing" else rng.normal(0, 100, (half.sum(), 1))
    found = fitted(capsys, "bench", wrote("half.npz", bench, **signals))
    (note,) = [w for w in found["warnings"] if "half.npz" in w]
    used = re.search(r"only 0.0 to ([\d.]+) s of its 12.0 s are used", note)
    assert used
    assert 5.0 < float(used[1]) <= 6.3
    assert not found["against"]
    kp = found["parameters"].get("gains.kp/servo") or found["parameters"]["gains.kp/*"]
    assert kp["value"] == pytest.approx(KP * kp["nominal"], rel=0.1)


def test_a_log_that_is_damaged_throughout_is_refused(bench, capsys):
    noise = np.random.default_rng(0).normal(0, 100, bench["q"].values.shape)
    assert "jumps as no joint does" in refused(capsys, "bench", wrote("noise.npz", bench, q=noise))
    assert "(NaN)" in refused(capsys, "bench", wrote("empty.npz", bench, q=np.full(noise.shape, np.nan)))


def test_bad_logs_among_good_ones_are_left_out_and_named(bench, capsys):
    bench = bench.slice(0, 6)
    good, same = wrote("good.npz", bench), wrote("same.npz", bench)
    dead = wrote("dead.npz", bench, q=np.zeros(bench["q"].values.shape))
    Path("cut.npz").write_bytes(Path(good).read_bytes()[:3000])
    found = fitted(capsys, "bench", "cut.npz", good, dead, same)
    alone = fitted(capsys, "bench", good, "--out", "alone")
    assert found["origin"]["logs"] == [good]
    assert found["parameters"] == alone["parameters"]
    for name, why in (("cut.npz", "zip"), (dead, "is told to move"), (same, "same recording as good.npz")):
        assert any(w.startswith(f"left out {name}") and why in w for w in found["warnings"]), name
    still = wrote("still.npz", bench, **{k: np.zeros(bench["q"].values.shape) for k in ("q", "q_cmd")})
    assert "none of the 2 logs can be fitted to; dead.npz" in refused(capsys, "bench", dead, still)


def test_a_refusal_leaves_earlier_results_as_they_were_and_says_where_new_ones_are(bench, capsys, monkeypatch):
    log = wrote("log.npz", bench.slice(0, 6))
    fitted(capsys, "bench", log)
    before = {p: p.read_bytes() for p in Path("fit").iterdir()}
    refused(capsys, "bench", wrote("still.npz", bench, q=np.zeros(bench["q"].values.shape)))
    assert {p: p.read_bytes() for p in Path("fit").iterdir()} == before

    def stumbles(twin, logs, tick, remember, *rest):
        remember("a rung", lambda: {"x": 1})
        raise BadInput("it stumbled")

    monkeypatch.setattr("gapless.identify.from_logs.fit_admitted", stumbles)
    said = refused(capsys, "bench", log, "--out", "late")
    assert "it stumbled" in said
    assert "late/progress.json" in said
    assert json.loads(Path("late/progress.json").read_text())["done"] == {"a rung": {"x": 1}}


def test_a_temperature_in_the_log_is_in_the_report_and_none_is_not(bench, capsys):
    some = bench.slice(0, 6)
    fitted(capsys, "bench", wrote("cold.npz", some))
    assert "against temperature" not in Path("fit/report.html").read_text().split("<body>")[1]
    warm = 30 + some["q"].time[:, None]
    fitted(capsys, "bench", wrote("warm.npz", some, temperature=warm), "--out", "warm")
    assert "Residual against temperature" in Path("warm/report.html").read_text().split("<body>")[1]


def test_two_fits_are_compared(bench, capsys):
    fitted(capsys, "bench", wrote("first.npz", bench.slice(0, 6)), "--out", "first")
    fitted(capsys, "bench", wrote("second.npz", bench.slice(6, 12)), "--out", "second")
    stiffer = recorded("bench", 6.0, kp=1.0)
    fitted(capsys, "bench", wrote("stiff.npz", stiffer), "--out", "stiff")
    before = {p: p.read_bytes() for p in Path("first").iterdir()}
    same = fitted(capsys, "--compare", "first", "second")
    assert same["holds"]
    assert not same["changed"]
    assert same["a"]["name"] == "first"
    other = fitted(capsys, "--compare", "first", "stiff", "--out", "moved")
    assert not other["holds"]
    assert other["changed"] == ["gains.kp/servo"]  # the truth, though masses that may all be off blur each number alone
    assert other["parameters"]["gains.kp/servo"]["ratio"] == pytest.approx(1 / KP, rel=0.1)
    assert json.loads(Path("moved/comparison.json").read_text()) == other
    assert sorted(p.name for p in Path("moved").iterdir()) == ["comparison.json", "report.html"]
    assert {p: p.read_bytes() for p in Path("first").iterdir()} == before
    main(["fit", "--compare", "first", "stiff"])
    assert "A is first, B is stiff." in capsys.readouterr().out
    assert "neither a model nor logs" in refused(capsys, "bench", "first.npz", "--compare", "first", "second")
    assert "has a fit in it" in refused(capsys, "--compare", "first", "second", "--out", "first")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ((), "name a model and logs"),
        (("--compare", "nowhere", "."), "nowhere: not a folder that `gapless fit` wrote, since it has no fit.json"),
        (("--compare", "text", "text"), "text/belief.json: not valid JSON"),
    ],
)
def test_what_is_no_fit_is_not_compared(argv, sentence, capsys):
    Path("text").mkdir()
    for name in ("fit.json", "belief.json"):
        Path("text", name).write_text("text")
    Path("text/twin.xml").write_text((MODELS / "bench.xml").read_text())
    assert sentence in refused(capsys, *argv)


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fit", "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert "gapless fit arm monday.mcap" in said
    assert "None" not in said
