"""Actions become joint targets by clip, scale and offset, and undriven joints stay at their default."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy.act import targets
from gapless.policy.contract import Action, Contract, Joints
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
