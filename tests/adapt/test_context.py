"""A context: what it means, who may be told it, and how the observation shows it."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn import Environment, Truth, build_contract, context_of, draw_from, task_of, with_context
from gapless.policy import Context, Observer, Pilot, Term
from gapless.twin import Box, Twin


@pytest.fixture(scope="module")
def twin():
    return Twin.load("pendulum")


def box(twin):
    space = twin.space.select("gains.kp/*", "latency.action")
    return Box(
        space,
        space.values({"latency.action": 0.0, "gains.kp/*": 1.0}),
        space.values({"latency.action": 0.04, "gains.kp/*": 4.0}),
    )


def teacher(twin, belief):
    return with_context(build_contract(twin, task_of("swing", twin)), context_of(belief))


def test_the_ends_of_a_range_are_minus_one_and_one_and_factors_are_even_by_their_logarithm(twin):
    belief = box(twin)
    context = context_of(belief)
    assert context.names == belief.space.names
    environment = Environment(twin, task_of("swing", twin), 3, belief, np.random.default_rng(0), 1)
    truth, middle = Truth(context, twin), belief.space.values({"latency.action": 0.02, "gains.kp/*": 2.0})
    environment.worlds.write(np.array([belief.low, middle, belief.high]))
    assert truth(environment.worlds) == pytest.approx(np.repeat([[-1.0], [0.0], [1.0]], 3, axis=1), abs=0.01)


def test_a_teacher_is_shown_its_worlds_as_they_are_now(twin):
    belief = box(twin)
    environment = Environment(twin, task_of("swing", twin), 4, belief, np.random.default_rng(0), 1, teacher(twin, belief))
    seen = environment.reset()["policy"]
    truth = Truth(environment.contract.context, twin)
    assert seen[:, -3:] == pytest.approx(truth(environment.worlds), abs=1e-6)
    environment.change_every = environment.scene.dt  # every robot changes in every period
    before = truth(environment.worlds)
    step = environment.step(np.zeros((4, 2)))
    assert (np.abs(truth(environment.worlds) - before) > 1e-3).all()
    assert step.observation["policy"][:, -3:] == pytest.approx(truth(environment.worlds), abs=1e-6)


def test_robots_do_not_change_in_mid_episode_unless_told_to(twin):
    environment = Environment(twin, task_of("swing", twin), 4, box(twin), np.random.default_rng(0), 1)
    environment.reset()
    before = environment.worlds.values.copy()
    environment.step(np.zeros((4, 2)))
    assert (environment.worlds.values == before).all()


def test_a_teacher_is_refused_on_a_robot_and_a_given_context_is_not(twin):
    told = teacher(twin, box(twin))
    assert told.teaches
    with pytest.raises(BadInput, match="is a teacher.*no robot knows them"):
        told.must_run_on_a_robot()

    class Net:
        contract = told

    with pytest.raises(BadInput, match="is a teacher"):
        Pilot(Net(), twin, ())
    given = with_context(told, Context(told.context.names, "search", value=(0.5, -1.0, 0.25)))
    given.must_run_on_a_robot()
    readings = {"q": np.zeros((2, 2)), "dq": np.zeros((2, 2))}
    seen = Observer(given, 2)(readings, np.zeros((2, 0)), np.zeros((2, 2)))
    assert seen[:, -3:].tolist() == [[0.5, -1.0, 0.25]] * 2


def test_a_privileged_term_is_an_error_but_for_a_teachers_context(twin):
    plain = build_contract(twin, task_of("swing", twin))
    privileged = Term("height", "height", 1, provenance="privileged")
    told = teacher(twin, box(twin))
    terms = (*told.observation.terms, privileged)
    for contract in (plain, told):
        with pytest.raises(BadInput, match="'height' is privileged"):
            dataclasses.replace(contract, observation=dataclasses.replace(contract.observation, terms=terms[-1:]))
    with pytest.raises(BadInput, match="'context' is privileged"):
        dataclasses.replace(told, context=Context(told.context.names, "constant", value=(0.0, 0.0, 0.0)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Context(("a", "b"), "search", value=(0.0,)), "context.value: 1 numbers for a context of 2"),
        (lambda: Context(("a",), "search"), "context.value: one is needed with 'search'"),
        (lambda: Context(("a",), "truth", value=(0.0,)), "context.value: one is not taken with 'truth'"),
        (lambda: Context(("a",), "oracle"), "'oracle' is not one of truth, encoder, history, search, constant"),
        (lambda: context_of(None), "these do not differ"),
    ],
)
def test_a_context_that_makes_no_sense_is_one_sentence(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        make()


def test_a_context_of_another_size_or_robot_is_one_sentence(twin):
    told = teacher(twin, box(twin))
    with pytest.raises(BadInput, match="3 columns, but the contract's context has 1"):
        dataclasses.replace(told, context=Context(("gains.kp/shoulder",), "truth"))
    with pytest.raises(BadInput, match="context is of another robot: arm has no gains.kp/shoulder, gains.kp/elbow"):
        Truth(told.context, Twin.load("arm"))
    assert len(context_of(draw_from("wide", Twin.load("arm"))).names) > 20
