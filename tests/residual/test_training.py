"""Joints alone repeat the full model, and the adjoint is the slope of what they do."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.logs import Log
from gapless.residual import training
from gapless.residual.own_run import own_run
from gapless.twin import Hysteresis, Twin, learned
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record


@pytest.fixture(scope="module")
def log() -> Log:
    spec = StandInSpec("bench", seed=3, tolerance=1.0)
    return record(StandIn(spec), plan_motion("rich", build_standin(spec), 4.0, np.random.default_rng(0)))


@pytest.fixture(scope="module")
def material(log: Log) -> training.Material:
    twin = Twin.load("bench")
    run = own_run(twin, log, twin.space.nominal)
    blocks = [np.zeros(len(f[0].x), dtype=np.int64) for f in run.felt]
    return training.sized(training.material([run], [blocks], twin.model.opt.timestep, True))


def nets(material: training.Material, size: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    blank = training.blank(Twin.load("bench"), material, np.ones(1), rng)
    numbers = training.numbers_of(blank)
    numbers[:, learned.HEAD :] += size * rng.standard_normal(numbers[:, learned.HEAD :].shape)
    return numbers


def test_a_joint_alone_without_a_network_repeats_the_full_model(material: training.Material) -> None:
    x, tau = np.empty(material.felt.shape[1]), np.empty(material.felt.shape[1])
    training.step_of(material, material.pieces, nets(material, 0.0), x, tau)
    assert np.abs(x - material.felt[0]).max() < np.radians(0.03)
    assert np.abs(tau).max() == 0


@pytest.mark.parametrize("target", [False, True])
def test_the_adjoint_is_the_slope_of_the_loss(material: training.Material, target: bool) -> None:
    gain = np.array([3.0 if target else 1.0])
    material = replace(material, target=target, gain=gain)  # a shift of the target acts within the drive's limits
    numbers = nets(material, 0.1)
    x, tau = np.empty(material.felt.shape[1]), np.empty(material.felt.shape[1])
    _, slope, _ = training.step_of(material, material.pieces, numbers, x, tau)
    way = np.random.default_rng(2).standard_normal(slope.shape)
    step, losses = 1e-5, []
    for side in (-1, 1):
        moved = numbers.copy()
        moved[:, learned.HEAD :] += side * step * way
        losses.append(training.step_of(material, material.pieces, moved, x, tau)[0].sum())
    assert (losses[1] - losses[0]) / (2 * step) == pytest.approx((slope * way).sum(), rel=0.05)


def test_training_lowers_the_error_of_what_it_is_trained_on(material: training.Material) -> None:
    numbers, losses = nets(material, 0.0), []
    training.trained(material, numbers, np.random.default_rng(0), 60, lambda k, e: losses.append(e))
    assert losses[-1] < 0.9 * losses[0]


def test_a_joint_alone_repeats_a_model_whose_friction_winds_up(log: Log) -> None:
    twin = Twin.load("bench").plus(Hysteresis())
    values = twin.space.values({"hysteresis.torque/servo": 0.1})
    run = own_run(twin, log, values)
    blocks = [np.zeros(len(f[0].x), dtype=np.int64) for f in run.felt]
    given = training.sized(training.material([run], [blocks], twin.model.opt.timestep, True))
    x, tau = np.empty(given.felt.shape[1]), np.empty(given.felt.shape[1])
    training.step_of(given, given.pieces, nets(given, 0.0), x, tau)
    assert np.abs(x - given.felt[0]).max() < np.radians(0.03)
