"""Compare: which numbers moved between two fits whose truth is known, what may have changed, and what cannot be compared."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

import gapless
from gapless.errors import BadInput
from gapless.identify import Fit, compare
from gapless.identify.result import estimates
from gapless.identify.score import Scores
from gapless.twin import Gaussian, Origin, Particles, Twin

USUAL = ("gains.*", "friction.viscous/*", "friction.coulomb/*", "armature.*", "latency.action")
SURE, LOOSE = 0.05, 2.0  # scaled units


@pytest.fixture(scope="module")
def dog() -> Twin:
    return Twin.load("quadruped", in_air=True)


@pytest.fixture(scope="module")
def arm() -> Twin:
    return Twin.load("arm")


def made(twin, change=(), seed=0, chosen=USUAL, tie=(), loose=(), **more) -> Fit:
    """A fit that found the truth to within its standard deviation.

    change: pattern to the truth, as a value or as a factor of nominal ("x1.2").
    """
    space = twin.space.select(*chosen).tie(*tie)
    values, spread = space.nominal.copy(), np.full(len(space), SURE)
    for pattern, value in dict(change).items():
        for i in map(space.names.index, space.match(pattern)):
            values[i] = values[i] * float(value[1:]) if isinstance(value, str) else value
    for pattern in loose:
        spread[[space.names.index(n) for n in space.match(pattern)]] = LOOSE
    drawn = space.to_scaled(values) + spread * np.random.default_rng(seed).normal(size=len(space))
    belief = Gaussian(space, space.to_scaled(space.clip(space.from_scaled(drawn))), np.diag(spread**2))
    given = {f.name: [] for f in fields(Fit)} | {"robot": twin.name, "fixed": {}, "zeros": {}, "twin": twin}
    given |= {"parameters": estimates(belief), "belief": belief, "values": twin.space.nominal, "seconds": 1.0}
    given |= dict.fromkeys(("train", "heldout"), Scores(0.1, 0.1, 0.1, 0.01)) | dict.fromkeys(
        ("seconds_used", "seconds_given"), 8.0
    )
    given |= {"pose": dict.fromkeys(twin.joints, 0.3), "origin": Origin(twin.name, (f"log {seed}",), {}, {})}
    if "trusted" in given:
        given["trusted"] = True
    return Fit(**given | more)


def said(comparison) -> str:
    return " ".join(comparison.suspicions)


def test_two_recordings_of_an_unchanged_robot_agree(dog):
    shares = []
    for seed in range(0, 20, 2):
        found = compare(made(dog, seed=seed), made(dog, seed=seed + 1))
        assert found.determined == len(found.parameters) == 61
        assert found.holds, seed
        assert not found.suspicions
        shares.append(found.moved / found.determined)
    assert np.mean(shares) == pytest.approx(0.1, abs=0.03)
    assert "one model holds in both recordings" in found.verdict().text
    assert "chance alone gives 10 %" in found.verdict().text
    assert found.verdict().good


def test_the_difference_is_counted_in_joint_standard_deviations(arm):
    change = {"gains.kp/elbow_flex": "x1.5", "friction.coulomb/gripper": 0.0728, "latency.action": 0.012}
    a, b = (made(arm, c) for c in ({"latency.action": 0.004}, change))  # the same seed, so the same errors
    found = compare(a, b)
    joint = np.sqrt(2) * SURE
    kp, dry, delay = (found.parameters[n] for n in ("gains.kp/elbow_flex", "friction.coulomb/gripper", "latency.action"))
    assert kp.difference == pytest.approx(1 / joint)  # a factor of 1.5 is a scaled unit
    assert kp.ratio == pytest.approx(1.5)
    assert dry.difference == pytest.approx((0.0728 / 0.052 - 1) / joint)
    assert delay.difference == pytest.approx(0.8 / joint)
    assert [c.moved for c in (kp, dry, delay)] == [True] * 3
    assert list(found.parameters)[:3] == ["gains.kp/elbow_flex", "latency.action", "friction.coulomb/gripper"]
    assert (found.moved, found.determined) == (3, 31)
    back = compare(b, a).parameters["gains.kp/elbow_flex"]
    assert back.difference == pytest.approx(-kp.difference)
    assert back.ratio == pytest.approx(1 / 1.5)


def test_a_number_that_joints_share_in_one_fit_is_compared_with_each_of_the_others(dog):
    tied = made(dog, {"gains.kp/*": "x1.2"}, 1, tie=("gains.kp/*", "gains.kd/*_calf"))
    own = made(dog, {"gains.kp/*": "x1.2", "gains.kp/RL_calf": "x1.6"}, 2)
    found = compare(tied, own)
    kp = {n: c for n, c in found.parameters.items() if c.quantity == "gains.kp"}
    assert sorted(kp) == sorted(f"gains.kp/{j}" for j in dog.joints)
    assert len({c.a.value for c in kp.values()}) == 1
    assert next(iter(found.parameters)) == "gains.kp/RL_calf"
    assert "of all joints only RL_calf moved (gains.kp)" in said(found)
    other = made(dog, {"gains.kp/*": "x1.2"}, 3, tie=("gains.kp/*_calf", "gains.kp/*_hip"))
    assert {"gains.kp/*_calf", "gains.kp/*_hip", "gains.kp/FL_thigh"} <= set(compare(tied, other).parameters)
    crossed = compare(made(dog, tie=("gains.kp/F*",)), made(dog, tie=("gains.kp/*_hip",)))
    assert "gains.kp/FL_hip+FR_hip" in crossed.parameters
    every = {n for pattern in USUAL for n in dog.space.match(pattern)}
    assert {m for c in crossed.parameters.values() for m in c.members} == every


def test_a_change_that_hides_in_each_number_alone_shows_in_all_of_them_together(arm):
    def blurred(change, seed):
        """Intervals that a common scale of all torques has widened, as masses that are all off do."""
        fit = made(arm, change, seed)
        space = fit.belief.space
        scale = np.array(
            [(1.0 if p.log else p.nominal) / p.scale if "N m" in p.unit or "kg" in p.unit else 0.0 for p in space.parameters]
        )
        belief = replace(fit.belief, covariance=fit.belief.covariance + 0.2**2 * np.outer(scale, scale))
        return replace(fit, belief=belief, parameters=estimates(belief))

    found = compare(blurred({}, 1), blurred({"gains.kp/elbow_flex": "x1.4"}, 2))
    assert not found.parameters["gains.kp/elbow_flex"].moved
    assert found.changed == ["gains.kp/elbow_flex"]
    assert not found.holds
    assert "of all joints only elbow_flex moved" in found.verdict().text
    torques = {f"{q}/*": "x1.2" for q in ("gains.kp", "gains.kd", "friction.viscous", "friction.coulomb", "armature.inertia")}
    assert compare(blurred({}, 1), blurred(torques, 2)).holds  # which is what the intervals allow for


@pytest.mark.parametrize("tie", [(), ("gains.kp/*", "gains.kd/*", "friction.viscous/*", "friction.coulomb/*")])
def test_torques_that_all_changed_by_one_factor_are_a_load_a_supply_or_a_unit(tie, dog):
    heavier = {f"{q}/*": "x0.75" for q in ("gains.kp", "gains.kd", "friction.viscous", "friction.coulomb", "armature.inertia")}
    found = compare(made(dog, seed=1, tie=tie), made(dog, heavier, 2, tie=tie))
    assert not found.holds
    assert not found.verdict().good
    first = found.suspicions[0]
    assert "0.75 times as large in B" in first.replace("0.74", "0.75").replace("0.76", "0.75")
    assert "heavier or its drives weaker" in first
    assert "a payload, the supply voltage, the temperature or a unit" in first
    assert "lacks a structure" not in said(found)


@pytest.mark.parametrize("tie", [(), ("gains.kp/*",)])
def test_kp_alone_that_changed_by_one_factor_is_the_firmware(tie, dog):
    found = compare(made(dog, seed=1, tie=tie), made(dog, {"gains.kp/*": "x1.3"}, 2, tie=tie))
    assert found.suspicions[0].startswith(("gains.kp is 1.2", "gains.kp is 1.3"))
    assert "firmware" in found.suspicions[0]
    assert "what has torque in its unit" not in said(found)


def test_a_delay_that_moved_is_the_bus_or_the_controller(dog):
    found = compare(made(dog, {"latency.action": 0.004}, 1), made(dog, {"latency.action": 0.012}, 2))
    assert "latency.action moved" in said(found)
    assert "bus" in said(found)
    assert "controller" in said(found)
    assert next(iter(found.parameters)) == "latency.action"


def test_what_moved_on_one_joint_or_in_one_limb_is_looked_for_there(dog):
    still = made(dog, seed=1)
    found = compare(still, made(dog, {"friction.coulomb/FR_calf": "x3", "gains.kp/FR_calf": "x0.6"}, 1))
    assert "of all joints only FR_calf moved" in said(found)
    limb = {f"{q}/FR_*": f"x{f}" for q, f in (("gains.kp", 0.6), ("friction.coulomb", 3.0), ("friction.viscous", 1.1))}
    found = compare(still, made(dog, limb, 1))
    assert "only one limb moved (FR_calf, FR_hip, FR_thigh; " in said(found)


def test_numbers_that_all_moved_by_their_own_factors_depend_on_the_motion(dog):
    rng = np.random.default_rng(5)
    names = [n for pattern in USUAL[:-1] for n in dog.space.match(pattern)]
    change = {n: f"x{np.exp(rng.normal(0, 0.5)):.3f}" for n in names}
    found = compare(made(dog, seed=1), made(dog, change | {"latency.action": 0.01}, 2))
    assert "lacks a structure" in said(found)
    assert len(found.suspicions) == 1
    assert found.moved > 0.6 * found.determined


def test_what_neither_recording_shows_is_listed_with_the_motion_that_would(dog):
    loose = ("friction.viscous/*", "armature.inertia/*_calf")
    found = compare(made(dog, seed=1, loose=loose), made(dog, seed=2, loose=("friction.viscous/*",)))
    assert sorted(found.unseen) == sorted(dog.space.match("friction.viscous/*"))
    assert "constant speed" in found.unseen["friction.viscous/FL_hip"]
    assert found.determined == 61 - 12 - 4
    odd = made(dog, {"friction.viscous/FL_calf": "x9"}, 2, loose=("friction.viscous/*",))
    odd = compare(odd, made(dog, {"friction.viscous/FL_calf": "x0.1"}, 3, loose=("friction.viscous/*",)))
    assert not odd.changed
    assert not odd.parameters["friction.viscous/FL_calf"].moved
    assert [c.identified for c in odd.parameters.values()] == [True] * 49 + [False] * 12
    assert "neither recording shows friction.viscous" in str(found).replace("\n", " ")
    none = compare(made(dog, loose=("*",)), made(dog, loose=("*",)))
    assert "cannot be compared" in none.verdict().text
    assert not none.verdict().good


def test_encoder_zeros_that_moved_mean_homing_or_a_tilted_mount(arm, dog):
    every = (*USUAL, "offset.encoder/*")
    for change, tilted in (
        ({"offset.encoder/shoulder_lift": 0.05}, True),
        ({"offset.encoder/elbow_flex": 0.05}, False),  # the base would turn the shoulder
        ({"offset.encoder/shoulder_pan": 0.05}, False),  # gravity does not show a turn about a plumb line
        ({"offset.encoder/shoulder_lift": 0.05, "offset.encoder/wrist_flex": -0.1}, False),
    ):
        found = compare(made(arm, seed=1, chosen=every), made(arm, change, 1, chosen=every))
        assert "homed anew" in said(found), change
        assert ("a mount" in said(found)) == tilted, change
    for change, tilted in (
        ({"offset.encoder/*_hip": 0.05}, True),
        ({"offset.encoder/*_thigh": -0.05}, True),
        ({"offset.encoder/FL_hip": 0.05, "offset.encoder/RR_hip": -0.05}, False),
        ({"offset.encoder/*L_hip": 0.05, "offset.encoder/*R_hip": -0.05}, False),
    ):
        found = compare(made(dog, seed=1, chosen=every), made(dog, change, 1, chosen=every))
        assert ("a mount" in said(found)) == tilted, change


def test_zeros_of_single_logs_count_by_their_scatter_between_logs(arm):
    n = len(arm.joints)
    a = {0: np.full(n, 0.01), 1: np.full(n, 0.012)}
    jump = np.eye(n)[1] * 0.04
    found = compare(made(arm, zeros=a), made(arm, zeros={i: z + jump for i, z in a.items()}))
    assert found.zeros["shoulder_lift"] == pytest.approx((0.011, 0.051))
    assert found.holds
    assert "the encoder's zero of shoulder_lift moved, by 2.3 deg" in said(found)
    assert "one model holds in both recordings. But" in found.verdict().text
    assert not compare(made(arm, zeros=a), made(arm, zeros=a)).suspicions
    wild = {0: np.full(n, -0.05), 1: np.full(n, 0.05)}
    found = compare(made(arm, zeros=a), made(arm, zeros=wild))
    assert "within B the zero of shoulder_pan differs by 5.7 deg between its logs" in said(found)
    assert "encoder's zero of" not in said(found)


def test_a_recording_that_leaves_far_more_unexplained_is_named(arm):
    found = compare(made(arm), made(arm, heldout=Scores(0.1, 0.1, 0.1, 0.03)))
    assert "B leaves 3.0 times the held-out error of A (1.7 against 0.57 deg)" in said(found)


def test_fits_that_were_not_made_alike_are_compared_with_a_note(dog):
    a = made(dog, seed=1, fixed={"gains.kp/FL_hip": 50.0}, chosen=USUAL[1:])
    b = made(dog, seed=2, chosen=(*USUAL[1:], "motor.limit/*"))
    a, b = (replace(f, origin=replace(f.origin, sha256={"quadruped": h})) for f, h in ((a, "1"), (b, "2")))
    found = compare(a, b)
    assert len(found.only_b) == 12
    assert not found.only_a
    text = " ".join(found.notes)
    for words in (
        "model's files differ",
        "gains.kp/FL_hip was not stated alike",
        "only one of the fits has motor.limit/FL_hip",
    ):
        assert words in text
    assert not compare(a, a).notes
    known = replace(a, origin=replace(a.origin, sha256={"log 1": "3"}))
    assert "both fits were made from log 1" in compare(known, known).notes[-1]


def test_particles_are_compared_as_a_gaussian_is(arm):
    one, other = made(arm, {"gains.kp/*": "x1.3"}, 1), made(arm, seed=2)
    drawn = one.belief.sample(3000, np.random.default_rng(0))
    cloud = replace(one, belief=Particles(one.belief.space, drawn, np.full(3000, 1 / 3000)))
    for name, change in compare(cloud, other).parameters.items():
        if name.startswith("gains"):
            assert change.difference == pytest.approx(compare(one, other).parameters[name].difference, abs=0.4)


def test_a_comparison_prints_saves_itself_and_comes_back(dog, tmp_path):
    hostile = made(
        dog, {"gains.kp/*": "x1.3", "latency.action": 0.01}, 2, robot="<script>evil()</script>", loose=("friction.v*",)
    )
    found = compare(replace(made(dog, seed=1, loose=("friction.v*",)), robot=hostile.robot), hostile)
    found.save(tmp_path / "moved")
    assert sorted(p.name for p in (tmp_path / "moved").iterdir()) == ["comparison.json", "report.html"]
    back = gapless.load(tmp_path / "moved")
    assert type(back).__name__ == "Comparison"
    assert back.json() == found.json() == json.loads((tmp_path / "moved/comparison.json").read_text())
    assert str(back) == str(found)
    assert max(map(len, str(found).splitlines())) <= 100
    assert "What may have changed" in (tmp_path / "moved/report.html").read_text()
    assert "<script>evil" not in (tmp_path / "moved/report.html").read_text()


def test_what_cannot_be_compared_is_refused_in_a_sentence(dog, arm, tmp_path):
    a = made(dog)
    (tmp_path / "empty").mkdir()
    for folder in ("nowhere", "empty"):
        with pytest.raises(BadInput, match=f"{folder}: not a folder that `gapless fit` wrote, since it has no fit.json"):
            compare(tmp_path / folder, a)
    with pytest.raises(BadInput, match="A is a fit of quadruped and B of arm"):
        compare(a, made(arm))
    with pytest.raises(BadInput, match="only one of them has the joint FL_calf"):
        compare(a, replace(made(arm), robot="quadruped"))
    with pytest.raises(BadInput, match="no fitted parameter in common"):
        compare(made(dog, chosen=("gains.*",)), made(dog, chosen=("friction.coulomb/*",)))
    with pytest.raises(BadInput, match=r"belief.json and fit.json are of different fits"):
        compare(replace(a, parameters={}), a)
