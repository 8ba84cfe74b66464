"""Actions become joint targets by clip, scale and offset, and undriven joints stay at their default."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy.act import targets
from gapless.policy.contract import Action, Contract, Joints, Reference
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


def test_a_reference_adds_a_gait_that_is_linear_between_its_rows_and_repeats():
    contract = made.residual()
    table = np.array(contract.action.reference.table)
    time, action = np.arange(200) * 0.02, np.random.default_rng(0).normal(size=(200, 12))
    command = np.tile([0.0, 0.3, 0.0], (200, 1))
    found = targets(contract, action, time=time, command=command)
    for j in range(12):  # the same by numpy's own interpolation of a periodic function, over a cycle of 0.4 s
        gait = np.interp(time, np.arange(8) * 0.05, table[:, j], period=0.4)
        np.testing.assert_allclose(found[:, j], made.DEFAULT[j] + 0.25 * action[:, j] + gait, atol=1e-12)


def test_a_phase_that_rounds_up_to_a_whole_cycle_is_its_start():
    contract = made.residual(frequency=1.0)
    time = np.array([0.0, 1.0, np.nextafter(1.0, 0.0), -1e-18])
    found = targets(contract, np.zeros((4, 12)), time=time, command=np.ones((4, 3)))
    np.testing.assert_allclose(found, np.tile(found[0], (4, 1)), atol=1e-12)


def test_a_reference_adds_nothing_while_its_commands_are_zero():
    contract = made.residual()
    command = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.5], [1e-9, 0.0, 0.0]])  # it does not listen to the yaw rate
    moved = targets(contract, np.zeros((3, 12)), time=np.full(3, 0.03), command=command) - made.DEFAULT
    assert (moved[:2] == 0.0).all()
    assert (moved[2] != 0.0).all()


def test_a_reference_drives_only_the_policys_joints_and_goes_through_the_filter():
    gait = Reference(1.0, ((0.2, 0.4),))  # one row: the same all the time
    action = Action("position", ("RR_calf", "FL_hip"), 1.0, 0.0, filter=0.5, reference=gait)
    contract = made.contract(made.terms()[:1], action)
    found = targets(contract, [[1.0, 1.0]], last=np.zeros((1, 12)), time=[0.3], command=[[1.0, 0.0, 0.0]])
    expected = 0.5 * np.array(made.DEFAULT)
    expected[11], expected[0] = 0.6, 0.7
    np.testing.assert_allclose(found, [expected])


def test_a_residual_without_time_or_command_is_refused():
    contract = made.residual()
    with pytest.raises(BadInput, match="a residual on a gait: its targets need the time and the command"):
        targets(contract, np.zeros((2, 12)))
    with pytest.raises(BadInput, match=r"shapes \(1,\) and \(2, 3\), not \(2,\) and \(2, 3\)"):
        targets(contract, np.zeros((2, 12)), time=[0.0], command=np.zeros((2, 3)))
    with pytest.raises(BadInput, match=r"and \(2, 2\), not"):
        targets(contract, np.zeros((2, 12)), time=[0.0, 0.0], command=np.zeros((2, 2)))


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
