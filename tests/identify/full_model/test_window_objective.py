"""The full model's fits: what shares a simulation, and a torque-driven pendulum whose links and zeros are wrong."""

import numpy as np
import pytest

from gapless.identify.full_model import window_objective as coupled
from gapless.identify.least_squares import colouring, least_squares
from gapless.measure import windows
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin as build, plan_motion as plan, record


def quadruped(change: dict[str, float | str]):
    spec = Spec("quadruped", in_air=True, tolerance=0, timestep=Twin.load("quadruped").model.opt.timestep, change=change)
    stand_in = StandIn(spec)
    return record(stand_in, plan("rich", build(spec), 6.0, np.random.default_rng(0)), stand_in.signal)


def test_parameters_of_different_legs_share_a_simulation_and_those_of_one_leg_do_not():
    twin = Twin.load("quadruped", in_air=True)
    data = windows(twin, [quadruped({})], most=2)
    space = twin.space.select("friction.coulomb/*", "friction.viscous/*", "latency.action")
    objective = coupled.Objective(data, space, twin.space.nominal, np.full(12, 0.01))
    assert len(space) == 25
    assert objective.coloured.colour.max() + 1 == 7  # six of a leg, and the delay, which moves all


def test_shared_columns_are_those_of_single_differences():
    affects = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], dtype=bool)
    a = affects.T * np.array([[1.0, 2.0, 3.0]]) + 0.0
    found = least_squares(
        lambda x: x @ a.T - a @ np.array([0.5, -0.3, 0.2]), np.zeros(3), np.full(3, -9.0), np.full(3, 9.0),
        coloured=colouring(affects),
    )  # fmt: skip
    assert colouring(affects).colour.tolist() == [0, 0, 1]
    np.testing.assert_allclose(found.x, [0.5, -0.3, 0.2], atol=1e-3)


def test_what_is_wrong_with_a_quadruped_is_found_in_the_full_model():
    twin = Twin.load("quadruped", in_air=True)
    change: dict[str, float | str] = {"friction.coulomb/*": "x1.6", "gains.kp/*_thigh": "x0.8"}
    data = windows(twin, [quadruped(change)])
    space = twin.space.select("friction.coulomb/*", "gains.kp/*")
    objective = coupled.Objective(data, space, twin.space.nominal, coupled.typical(data, twin.space.nominal))
    values = objective.values(coupled.solve(objective)[None])[0]
    for name in space.names:
        i = twin.space.names.index(name)
        wanted = 1.6 if "coulomb" in name else 0.8 if name.endswith("_thigh") else 1.0
        assert values[i] / twin.space.nominal[i] == pytest.approx(wanted, rel=0.03), name


def test_evolution_ends_no_worse_than_it_began():
    twin = Twin.load("quadruped", in_air=True)
    data = windows(twin, [quadruped({"gains.kp/*": "x0.8"})], most=1)
    two = twin.space.select(*twin.space.match("gains.kp/*")[:2])
    objective = coupled.Objective(data, two, twin.space.nominal, np.full(12, 0.01))
    before, after = ((objective(x[None])[0] ** 2).sum() for x in (objective.start, coupled.evolve(objective, seconds=3.0)))
    assert after < before


def test_encoder_zeros_of_single_logs_go_in_and_come_out_and_a_log_without_one_has_none():
    twin = Twin.load("quadruped", in_air=True)
    data = windows(twin, [quadruped({})] * 2, most=2)
    space = twin.space.select("latency.action")
    zeros = {1: np.linspace(-0.03, 0.03, 12)}
    objective = coupled.Objective(data, space, twin.space.nominal, np.full(12, 0.01), zeros=True)
    back = objective.own_zeros(objective.with_zeros(objective.start, zeros))
    np.testing.assert_allclose(back[1], zeros[1])
    np.testing.assert_allclose(back[0], 0.0)
    plain = coupled.Objective(data, space, twin.space.nominal, np.full(12, 0.01))
    np.testing.assert_array_equal(plain.with_zeros(plain.start, zeros), plain.start)
