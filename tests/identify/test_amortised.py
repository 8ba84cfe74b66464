"""Amortised posteriors: learnt once, a log gives its belief at once; regions hold the truth of robots not learnt from."""

import time

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.identify.amortised import Amortised, calibrate, learn_amortised, measure, posterior_space, robots_of
from gapless.identify.amortised_result import AmortisedFit, _motion, ask_network
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record

pytestmark = pytest.mark.xdist_group("amortised")
pytest.importorskip("sbi")
NAMES = ("gains.kp/servo", "friction.coulomb/servo")


@pytest.fixture(scope="module")
def known():
    twin = Twin.load("bench")
    motion = plan_motion("rich", twin, 3.0, np.random.default_rng(1))
    space, rng = posterior_space(twin, NAMES), np.random.default_rng(0)
    return twin, learn_amortised(twin, motion, rng, space, simulations=400, doubt=0.0)


def test_regions_hold_the_truth_of_robots_of_another_time_step(known):
    _, amortised = known
    finer, rng = build_standin(StandInSpec("bench", 0)), np.random.default_rng(3)
    truth = amortised.space.mirrored(rng.standard_normal((40, 2)))
    q = measure(finer, robots_of(finer, amortised.space, truth, rng), amortised.motion, rng)
    found = calibrate(amortised, truth, q, rng, 200)
    assert found.covered >= 0.8 and found.gain > 0.5
    assert found.ranks.shape == (40, 2) and ((found.uniform() >= 0) & (found.uniform() <= 1)).all()


def test_a_log_gives_its_belief_at_once_also_from_a_file(known, tmp_path):
    twin, amortised = known
    log = record(StandIn(StandInSpec("bench", 1, change={"friction.coulomb/servo": "x3"})), amortised.motion)
    amortised.save(tmp_path / "posterior.npz")
    again = Amortised.load(tmp_path / "posterior.npz", twin)
    began = time.perf_counter()
    belief = again.belief(twin, log, np.random.default_rng(0))
    assert time.perf_counter() - began < 2.0
    np.testing.assert_allclose(belief.values, amortised.belief(twin, log, np.random.default_rng(0)).values, rtol=1e-6)
    dry = 3 * twin.space.nominal[twin.space.names.index("friction.coulomb/servo")]
    low, high = np.percentile(belief.values[:, 1], (5, 95))
    assert low < dry < high and low > dry / 2


def test_a_file_without_a_network_gets_one_for_the_motion_of_the_log(known, tmp_path):
    twin, amortised = known
    log = record(StandIn(StandInSpec("bench", 1)), amortised.motion)
    amortised.save(tmp_path / "posterior.npz")
    found = ask_network(twin, log, tmp_path / "posterior.npz")
    assert not found.learnt and found.seconds < 2.0 and set(found.parameters) == set(NAMES)
    found.save(tmp_path / "out")
    again = AmortisedFit.load(tmp_path / "out")
    assert again.parameters == found.parameters and again.belief.mean() == pytest.approx(found.belief.mean())
    np.testing.assert_allclose(_motion(twin, log), amortised.motion)  # what it would be learnt for


def test_logs_that_it_does_not_know_are_refused(known, tmp_path):
    twin, amortised = known
    robot = StandIn(StandInSpec("bench", 1))
    other = record(robot, plan_motion("chirp", twin, 3.0, np.random.default_rng(0)))
    with pytest.raises(BadInput, match="not the motion that the network knows"):
        amortised.belief(twin, other, np.random.default_rng(0))
    with pytest.raises(BadInput, match="the network knows a motion of 3.0 s"):
        amortised.belief(twin, record(robot, amortised.motion[:50]), np.random.default_rng(0))
    amortised.save(tmp_path / "posterior.npz")
    with pytest.raises(BadInput, match="servo"):
        Amortised.load(tmp_path / "posterior.npz", Twin.load("pendulum"))
    with pytest.raises(BadInput, match="needs at least 200 simulations"):
        learn_amortised(twin, amortised.motion, np.random.default_rng(0), amortised.space, simulations=50)


def test_damaged_and_hostile_files_are_refused(known, tmp_path):
    twin, amortised = known
    path = tmp_path / "posterior.npz"
    amortised.save(path)
    with np.load(path) as held:
        whole = dict(held)
    for change, words in (
        ({"layers": np.array([10**9, 10**9])}, "do not fit together"),
        ({"centre": whole["centre"][:-1]}, "do not fit together"),
        ({"size": whole["size"] * np.nan}, "not finite"),
        ({"names": np.array(["nothing"])}, "nothing"),
        ({"names": np.array([{}], object)}, "not a network"),
        ({"layers": np.array([32, 4])}, "another network"),
        ({"motion": whole["motion"].repeat(2, axis=1)}, "joints"),
    ):
        np.savez(path, **{**whole, **change})
        with pytest.raises(BadInput, match=words):
            Amortised.load(path, twin)
    np.savez(path, **{name: array for name, array in whole.items() if name != "widened"})
    with pytest.raises(BadInput, match="not a network of a posterior"):
        Amortised.load(path, twin)
    np.savez_compressed(path, **{**whole, "centre": np.zeros(10**7)})
    with pytest.raises(BadInput, match="unpack"):
        Amortised.load(path, twin)
    for content in (b"PK nothing", path.read_bytes()[:-200], b""):
        path.write_bytes(content)
        with pytest.raises(BadInput, match="posterior.npz"):
            Amortised.load(path, twin)
