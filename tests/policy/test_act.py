"""Actions become joint targets by clip, scale and offset, and undriven joints stay at their default."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy.act import targets
from gapless.policy.contract import Contract
from gapless.policy.gait import Gait
from gapless.policy.parts import Action, Joints, Reference
from tests.policy import made


def test_a_target_is_offset_plus_scaled_and_clipped_action():
    action = Action("position", made.JOINTS, (0.125, 0.25, 0.25) * 4, made.DEFAULT, (-1.0, (0.5,) * 12))
    given = np.array([[2.0, -2.0, 0.2] * 4])
    expected = np.array([[0.1 + 0.125 * 0.5, 0.8 - 0.25, -1.5 + 0.25 * 0.2] * 4])
    np.testing.assert_allclose(targets(made.contract(action=action), given), expected)


def test_joints_that_the_policy_does_not_drive_stay_at_default():
    driven = ("RR_calf", "FL_hip")
    contract = made.contract(made.terms()[:1], Action("position", driven, 0.5, 0.0))
    found = targets(contract, np.array([[1.0, 2.0]]))
    expected = np.array([made.DEFAULT])
    expected[0, 11], expected[0, 0] = 0.5, 1.0
    np.testing.assert_allclose(found, expected)


def test_undriven_joints_of_a_torque_policy_get_none():
    contract = made.contract(made.terms()[:1], Action("torque", ("FL_hip",), 10.0, 0.0))
    np.testing.assert_allclose(targets(contract, [[0.5]]), [[5.0] + [0.0] * 11])


def test_the_filter_takes_its_share_of_a_new_target():
    contract = made.contract(action=Action("position", made.JOINTS, 1.0, 0.0, filter=0.2))
    last = np.zeros((2, 12))
    expected = 0.0
    for _ in range(5):
        last = targets(contract, np.ones((2, 12)), last)
        expected += 0.2 * (1 - expected)
        np.testing.assert_allclose(last, expected)
    np.testing.assert_allclose(targets(contract, np.ones((2, 12))), 1.0)


def after(contract: Contract, n: int, periods: int) -> Gait:
    gait = Gait(contract, n)
    for _ in range(periods):
        gait.advance(np.ones((n, 3)), {})
    return gait


def test_a_reference_adds_a_gait_that_is_linear_between_its_rows_and_repeats():
    contract = made.residual()
    table = np.array(contract.action.reference.table)
    gait, rng, command = Gait(contract, 1), np.random.default_rng(0), np.array([[0.0, 0.3, 0.0]])
    for period in range(200):
        action = rng.normal(size=(1, 12))
        # the same by numpy's own interpolation of a periodic function, over a cycle of 0.4 s
        added = [np.interp(0.02 * period, np.arange(8) * 0.05, table[:, j], period=0.4) for j in range(12)]
        found = targets(contract, action, gait=gait, command=command)
        np.testing.assert_allclose(found, made.DEFAULT + 0.25 * action + added, atol=1e-12)
        gait.advance(command, {})


def test_a_reference_adds_nothing_while_its_commands_are_zero():
    contract = made.residual()
    command = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.5], [1e-9, 0.0, 0.0]])  # it does not listen to the yaw rate
    moved = targets(contract, np.zeros((3, 12)), gait=after(contract, 3, 2), command=command) - made.DEFAULT
    assert (moved[:2] == 0.0).all()
    assert (moved[2] != 0.0).all()


def test_a_reference_drives_only_the_policys_joints_and_goes_through_the_filter():
    gait = Reference(1.0, ((0.2, 0.4),))  # one row: the same all the time
    action = Action("position", ("RR_calf", "FL_hip"), 1.0, 0.0, filter=0.5, reference=gait)
    contract = made.contract(made.terms()[:1], action)
    found = targets(contract, [[1.0, 1.0]], np.zeros((1, 12)), after(contract, 1, 15), [[1.0, 0.0, 0.0]])
    expected = 0.5 * np.array(made.DEFAULT)
    expected[11], expected[0] = 0.6, 0.7
    np.testing.assert_allclose(found, [expected])


def test_a_residual_without_gait_or_command_is_refused():
    contract = made.residual()
    with pytest.raises(BadInput, match="added to a reference gait: its targets need the gait and the command"):
        targets(contract, np.zeros((2, 12)))
    with pytest.raises(BadInput, match=r"the command has shape \(2, 2\), not \(2, 3\)"):
        targets(contract, np.zeros((2, 12)), gait=Gait(contract, 2), command=np.zeros((2, 2)))


def test_what_is_missing_or_does_not_fit_is_said():
    with pytest.raises(BadInput, match="drives 12 joints"):
        targets(made.contract(), np.zeros((1, 11)))
    with pytest.raises(BadInput, match="action's scale"):
        targets(made.contract(action=Action("position", made.JOINTS)), np.zeros((1, 12)))
    partial = Contract(Joints(("a", "b")), Action("position", ("a",), 1.0, 0.0))
    with pytest.raises(BadInput, match="default position"):
        targets(partial, [[0.0]])
    np.testing.assert_allclose(
        targets(dataclasses.replace(partial, joints=Joints(("a", "b"), (0.0, 0.3))), [[0.1]]), [[0.1, 0.3]]
    )
