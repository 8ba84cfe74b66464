"""Particles by weight and by network, against posteriors that are known and robots whose parameters are."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.identify import Fit, fit, uncertainty as unknown
from gapless.identify.full_model import window_objective as coupled
from gapless.identify.posteriors import Cut, Drawn, Problem, learnt, particles, problem, weighted
from gapless.logs import Log
from gapless.measure import windows
from gapless.twin import Friction, Gaussian, Twin
from gapless.worlds import StandIn, StandInSpec as Spec, Worlds, build_standin as build, plan_motion as plan, record

pytestmark = pytest.mark.xdist_group("posteriors")  # one worker makes the fixtures, once

BOTH = pytest.mark.parametrize(
    "sampled",
    [lambda p: weighted(p, 2000, np.random.default_rng(0)), lambda p: learnt(p, 800, 1000, np.random.default_rng(0))],
    ids=["weighted", "learnt"],
)


def linear(parameters: int = 4, low: float = -50.0) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Errors that are linear, white and of size 1; the last parameter has a lower bound, in deviations from its mean."""
    rng = np.random.default_rng(3)
    slopes = rng.normal(size=(500, parameters)) * np.geomspace(1, 10, parameters) @ rng.normal(size=(parameters, parameters))
    seen = slopes @ rng.normal(size=parameters) + rng.normal(size=500)
    covariance = np.linalg.inv(slopes.T @ slopes + np.eye(parameters) / unknown.PRIOR**2)
    mean = covariance @ slopes.T @ seen
    bound = np.full(parameters, -50.0)
    bound[-1] = max(mean[-1] + low * covariance[-1, -1] ** 0.5, -50.0)
    start = np.maximum(mean + 0.5 * np.sqrt(np.diag(covariance)), bound)
    there = start @ slopes.T - seen
    return Problem(lambda x: x @ slopes.T - seen, start, bound, np.full(parameters, 50.0), there, slopes, 256), mean, covariance


def quantiles(x: np.ndarray, weights: np.ndarray, at: tuple[float, ...] = (0.05, 0.5, 0.95)) -> np.ndarray:
    """Of each column. Shape: (columns, quantiles)."""
    order = np.argsort(x, axis=0)
    return np.stack([np.interp(at, np.cumsum(weights[o]) - weights[o] / 2, c[o]) for c, o in zip(x.T, order.T, strict=True)])


@BOTH
def test_a_linear_problem_has_its_analytic_posterior(sampled):
    p, mean, covariance = linear()
    x, w, doubts = sampled(p)
    off = np.linalg.solve(np.linalg.cholesky(covariance), (x - mean).T)
    np.testing.assert_allclose(off @ w, 0, atol=0.2)
    np.testing.assert_allclose(off * w @ off.T, np.eye(4), atol=0.3)
    assert not doubts


@BOTH
def test_a_bound_cuts_the_posterior_off(sampled):
    p, mean, covariance = linear(low=-0.3)
    x, w, _ = sampled(p)
    exact = np.random.default_rng(1).multivariate_normal(mean, covariance, 200_000)
    exact = exact[exact[:, -1] >= p.low[-1]]
    assert (x >= p.low).all()
    error = (quantiles(x, w) - np.quantile(exact, (0.05, 0.5, 0.95), axis=0).T) / exact.std(axis=0)[:, None]
    np.testing.assert_allclose(error, 0, atol=0.3)


@BOTH
def test_a_bent_posterior_is_that_of_a_grid(sampled):
    def errors(x):
        return np.stack([x[:, 0] - 0.3, 3 * (x[:, 1] + 0.3 * x[:, 0] ** 2) - 0.2], axis=1)

    start, low, high = np.array([0.3, 0.04]), np.array([-6.0, -20.0]), np.array([6.0, 20.0])
    p = Problem(errors, start, low, high, errors(start[None])[0], np.array([[1, 0], [0.54, 3]]), 2000)
    grid = np.stack(np.meshgrid(np.linspace(-5, 5, 501), np.linspace(-8, 4, 601), indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(p.log_density(grid))
    exact = quantiles(grid, density / density.sum())
    x, w, _ = sampled(p)
    np.testing.assert_allclose(quantiles(x, w), exact, atol=0.45)
    centre, covariance = p.gaussian()
    assert exact[1, 0] < centre[1] - 1.645 * covariance[1, 1] ** 0.5 - 0.5  # a Gaussian would fail


def test_a_gaussian_that_bounds_cut_is_drawn_from_exactly():
    covariance = np.array([[1.0, 0.9, 0.5], [0.9, 1.0, 0.3], [0.5, 0.3, 2.0]])
    rng = np.random.default_rng(0)
    low, high = np.array([0.5, -0.5, -100.0]), np.array([3.0, 0.8, 100.0])
    drawn = Cut(np.zeros(3), covariance, low, high).sample(20_000, rng)
    exact = rng.multivariate_normal(np.zeros(3), covariance, 1_000_000)
    exact = exact[((exact >= low) & (exact <= high)).all(axis=1)]
    np.testing.assert_allclose(drawn.mean(axis=0), exact.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(exact.T), atol=0.05)


def test_particles_that_hardly_count_are_evened_out_and_that_is_said():
    def ring(x):
        return 300 * (np.linalg.norm(x, axis=1, keepdims=True) - 3)

    start = np.array([3.0, 0.0, 0.0])
    p = Problem(ring, start, np.full(3, -9.0), np.full(3, 9.0), ring(start[None])[0], np.array([[300.0, 0, 0]]), 1000)
    _, w, doubts = weighted(p, 300, np.random.default_rng(0))
    assert 1 / (w @ w) == pytest.approx(60, rel=0.01)
    assert "particles count" in doubts[0]


def test_a_network_that_saw_nothing_like_the_logs_says_so():
    def errors(x):
        return 5 * np.tanh(x) - 40

    start = np.zeros(2)
    p = Problem(errors, start, np.full(2, -9.0), np.full(2, 9.0), errors(start[None])[0], 5 * np.eye(2), 1000)
    assert "no simulation is like the logs" in learnt(p, 100, 50, np.random.default_rng(0))[2][0]


class Straight:
    """A linear objective: two windows of two columns, two parameters, one number besides that is not asked for."""

    def __init__(self, noise: np.ndarray):
        rng = np.random.default_rng(5)
        self.a = rng.normal(size=(len(noise), 3)) * [0.1, 0.2, 0.1]
        self.noise = noise
        self.space, self.size, self.base, self.coloured = range(2), np.ones(2), np.zeros(2), None
        self.bounds, self.prior = (np.full(3, -99.0), np.full(3, 99.0)), np.array([3.0, 3.0, 0.5])
        count = len(noise) // 80
        self.data = SimpleNamespace(window=np.repeat(np.arange(count), 40), count=count)

    def __call__(self, x):
        return x @ self.a.T + self.noise


def test_what_is_not_asked_for_is_integrated_out():
    objective = Straight(np.random.default_rng(0).normal(size=8000) * np.tile([1.0, 3.0], 4000))
    objective.a[:, 2] += objective.a[:, 0]  # it can stand in for the first parameter
    p = problem(objective, np.zeros(3))
    ratio = p.errors(np.zeros((1, 2)))[0].reshape(-1, 2) / objective.noise.reshape(-1, 2)
    a = objective.a * np.tile(np.median(ratio, axis=0), 4000)[:, None]
    precision = a.T @ a + np.diag([1 / unknown.PRIOR**2] * 2 + [4.0])
    np.testing.assert_allclose(p.gaussian()[1], np.linalg.inv(precision)[:2, :2], rtol=0.1, atol=1e-4)
    assert p.gaussian()[1][0, 0] > 1.5 * np.linalg.inv(precision[:2, :2])[0, 0]


@pytest.mark.parametrize("last", [1, 10])
def test_noise_counts_by_its_size_in_each_column_and_by_how_long_it_lasts(last):
    noise = np.repeat(np.random.default_rng(0).normal(size=(4000 // last, 2)), last, axis=0) * [1.0, 3.0]
    p = problem(Straight(noise.ravel()), np.zeros(3))
    size = np.sqrt((p.residual.reshape(-1, 2) ** 2).mean(axis=0))
    np.testing.assert_allclose(size, 1 / np.sqrt(last), rtol=0.3)


def test_windows_that_contradict_each_other_widen_it():
    rng = np.random.default_rng(0)
    calm = Straight(rng.normal(size=8000))
    pull = calm.a[:, :2] @ [1.0, -1.0] * np.repeat(rng.normal(size=100), 80)  # each window wants parameters of its own
    apart = Straight(calm.noise + pull)
    widths = [np.sqrt(np.diag(problem(o, np.zeros(3)).gaussian()[1])) for o in (calm, apart)]
    assert (widths[1] > 1.2 * widths[0]).all()


NAMES = ("gains.kp/*", "friction.viscous/*", "friction.coulomb/*", "armature.inertia/*")


def bench(seed: int) -> tuple[Twin, Log, dict[str, float]]:
    """The model of a servo bench, a log of one with secrets, and those."""
    rng = np.random.default_rng(seed)
    twin = Twin.load("bench", add=[Friction(full=True)])
    space = twin.space.select(*NAMES)
    change = dict(zip(space.names, space.clip(space.from_scaled(rng.uniform(-0.7, 0.7, len(space)))).tolist(), strict=True))
    change |= {"latency.action": 0.0063, "latency.observation": 0.0, "latency.jitter": 0.0, "sensors.skew": 0.0}
    sensors = {"noise_q": 0.0005, "noise_dq": 0.01, "quantum_q": 0.0}
    spec = Spec("bench", tolerance=0, timestep=twin.model.opt.timestep, change=change, sensors=sensors)
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 12.0, rng), stand_in.signal)
    return twin, log, dict(zip(twin.space.names, twin.space.nominal.tolist(), strict=True)) | stand_in.reveal()


def covered(drawn: Drawn, truth: dict[str, float]) -> np.ndarray:
    """Whether each parameter's 90 % interval has the truth."""
    ends = quantiles(drawn.belief.values, drawn.belief.weights)
    at = np.array([truth[n] for n in drawn.belief.space.names])
    return (ends[:, 0] <= at) & (at <= ends[:, 2])


@pytest.fixture(scope="module")
def fitted() -> tuple[Fit, Log, dict[str, float]]:
    twin, log, truth = bench(1)
    return fit(twin, [log]), log, truth


@pytest.fixture(scope="module")
def drawn(fitted) -> dict[str, Drawn]:
    found, log, _ = fitted
    rng = np.random.default_rng(0)
    return {"particles": particles(found, [log], 150, rng), "posterior": particles(found, [log], 500, rng, simulations=400)}


@pytest.mark.parametrize("method", ["particles", "posterior"])
def test_the_secrets_of_a_bench_lie_in_the_intervals(method, drawn, fitted):
    assert drawn[method].belief.space == fitted[0].belief.space
    assert drawn[method].effective > 30
    assert not drawn[method].warnings
    assert covered(drawn[method], fitted[2]).mean() > 0.7


def test_intervals_are_as_wide_by_weight_as_by_network_and_about_as_wide_as_those_of_the_fit(drawn, fitted):
    belief = fitted[0].belief
    ends = [quantiles(belief.space.to_scaled(d.belief.values), d.belief.weights) for d in drawn.values()]
    weighted_width, learnt_width = (e[:, 2] - e[:, 0] for e in ends)
    np.testing.assert_allclose(np.log(weighted_width / learnt_width), 0, atol=np.log(1.5))
    ratio = weighted_width / (2 * 1.645 * np.sqrt(np.diag(belief.covariance)))
    assert 0.4 < np.median(ratio) < 2  # the fit's is wider where the halves of the log disagree


def test_intervals_cover_the_secrets_of_several_robots():
    hits = []
    for seed in range(2, 5):
        twin, log, truth = bench(seed)
        space, start = twin.space.select(*NAMES), twin.space.values({"latency.action": 0.0063})
        data = windows(twin, [log])
        objective = coupled.Objective(data, space, start, coupled.typical(data, start))
        x = coupled.solve(objective)
        near = SimpleNamespace(
            twin=twin, values=objective.values(x[None])[0], belief=Gaussian(space, x, np.eye(len(x)) * 1e-4), zeros={}
        )
        hits += covered(particles(near, [log], 80, np.random.default_rng(0)), truth).tolist()
    assert 0.7 < np.mean(hits) <= 1


def test_a_tied_parameter_moves_all_of_its_members_and_worlds_draw_from_it():
    spec = Spec("arm", tolerance=0, change={"gains.kp/*": "x0.8"}, sensors={"noise_q": 0.0005, "noise_dq": 0.01})
    stand_in = StandIn(spec)
    log = record(stand_in, plan("rich", build(spec), 4.0, np.random.default_rng(0)), stand_in.signal)
    twin = Twin.load("arm")
    space = twin.space.select("gains.kp/*").tie("gains.kp/*")
    values = twin.expand(0.8 * space.nominal[None], space)[0]
    near = SimpleNamespace(
        twin=twin, values=values, belief=Gaussian(space, space.to_scaled(0.8 * space.nominal), np.eye(1) * 1e-3), zeros={}
    )
    drawn = particles(near, [log], 40, np.random.default_rng(0))
    assert drawn.belief.space == space
    assert drawn.belief.mean()[0] == pytest.approx(0.8 * space.nominal[0], rel=0.02)
    Worlds(twin, 4, drawn.belief, np.random.default_rng(0))


def test_the_same_seed_gives_the_same_and_leaves_torch_the_disk_and_the_terminal_alone(tmp_path, monkeypatch, capfd):
    import torch

    monkeypatch.chdir(tmp_path)
    p, _, _ = linear(2, low=0.0)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    np.testing.assert_array_equal(*(learnt(p, 100, 50, np.random.default_rng(0))[0] for _ in range(2)))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_progress_is_told():
    told: list[str] = []
    p, _, _ = linear(2)
    weighted(p, 600, np.random.default_rng(0), told.append)
    assert told == [f"particles, round 1: {done} of 600 simulated" for done in (0, 256, 512)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f, log, rng: particles(f, [log], 1, rng), "at least .* particles, not 1"),
        (lambda f, log, rng: particles(f, [], 100, rng), "no log"),
        (lambda f, log, rng: particles(f, [log], 1000, rng, simulations=0), "at least 100 simulations, not 0"),
        (lambda f, log, rng: particles(f, [log], 1, rng, simulations=1000), "at least .* particles, not 1"),
        (lambda f, log, rng: particles(f, [], 1000, rng, simulations=1000), "no log"),
        (lambda f, log, rng: particles(f, [log], 100, rng, signals=("q", "tau_cmd")), "no tau_cmd"),
    ],
)
def test_bad_input_is_refused(call, words, fitted):
    found, log, _ = fitted
    with pytest.raises(BadInput, match=words):
        call(found, log, np.random.default_rng(0))


def test_without_sbi_it_says_what_to_install(monkeypatch, fitted):
    monkeypatch.setitem(sys.modules, "sbi.inference", None)
    with pytest.raises(BadInput, match=r"--method posterior needs sbi: pip install 'gapless\[posterior\]'"):
        particles(fitted[0], [fitted[1]], 1000, np.random.default_rng(0), simulations=1000)
