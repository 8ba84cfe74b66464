"""The pilot: a policy that commands one robot as its contract says."""

import dataclasses

import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.policy import Action, Gait, Observation, Observer, Pilot, Term, Timing, targets
from gapless.twin import Twin
from gapless.worlds import StandIn, StandInSpec as Spec, record
from tests.policy import made

WALK = (0.5, 0.0, 0.1)


class Remembering:
    """Stands for a network: shows what it was given, and answers with what is easily told apart."""

    def __init__(self, contract):
        self.contract, self.seen, self.resets = contract, [], 0

    def __call__(self, observation):
        self.seen.append(observation)
        return np.full((1, len(self.contract.action.joints)), 0.1 * len(self.seen), np.float32)

    def reset(self):
        self.resets += 1


def test_it_answers_each_reading_as_the_contract_says():
    """Joints of the contract are in another order than those of the robot, and two of them are not driven."""
    order = tuple(reversed(made.JOINTS))
    contract = dataclasses.replace(made.contract(), joints=dataclasses.replace(made.contract().joints, names=order))
    scale = np.linspace(0.1, 0.3, 10)
    action = Action("position", order[:10], tuple(scale), (0.2,) * 10)
    observed = tuple(t for t in made.terms() if t.kind != "last_action") + (Term("last_action", "last_action", 10),)
    contract = dataclasses.replace(contract, action=action, observation=Observation(observed))
    policy = Remembering(contract)
    twin = Twin.load("quadruped")
    robot = StandIn(Spec("quadruped"))
    readings = [robot.read()]
    pilot = Pilot(policy, twin, WALK)
    log = record(robot, [pilot] * 3)
    for k, joint in enumerate(twin.joints):
        i = order.index(joint)
        sent = 0.2 + scale[i] * np.array([0.1, 0.2, 0.3, 0.3]) if i < 10 else np.full(4, made.DEFAULT[i])
        np.testing.assert_allclose(log["q_cmd"].values[:, k], sent, rtol=1e-6, err_msg=joint)
    ordered = {s: v[None] if v.ndim and len(v) != 12 else v[None, ::-1] for s, v in readings[0].items() if s != "time"}
    expected = Observer(contract, 1)(ordered, [WALK], np.zeros((1, 10)))
    np.testing.assert_array_equal(policy.seen[0], expected)
    assert policy.resets == 1


def test_a_gait_and_a_filter_go_on_from_period_to_period():
    contract = made.residual(made.terms()[:2])
    contract = dataclasses.replace(contract, action=dataclasses.replace(contract.action, filter=0.5))
    pilot = Pilot(Remembering(contract), Twin.load("quadruped"), WALK)
    robot = StandIn(Spec("quadruped"))
    first, second = pilot(robot.read()), pilot(robot.read())
    gait, command = Gait(contract, 1), np.array([WALK])
    action = np.full((1, 12), 0.1)
    begun = targets(contract, action, None, gait, command)
    np.testing.assert_allclose(first, begun[0], rtol=1e-6)
    gait.advance(command, {})
    np.testing.assert_allclose(second, targets(contract, 2 * action, begun, gait, command)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("robot", "in_air", "contract", "command", "message"),
    [
        ("biped", False, made.contract(), WALK, "the policy is for a robot with joints FL_hip"),
        ("quadruped", True, made.contract(), WALK, "the policy needs an IMU for gyro, gravity"),
        ("quadruped", False, made.contract(), (0.5,), r"the policy takes 3 commands \(vx, vy, yaw_rate\), not 1"),
        (
            "quadruped",
            False,
            dataclasses.replace(made.contract(), timing=Timing(0.01)),
            WALK,
            "the policy runs every 0.01 s, but quadruped is commanded every 0.02 s",
        ),
        (
            "quadruped",
            False,
            made.contract(action=Action("torque", made.JOINTS, 1.0, 0.0)),
            WALK,
            "the policy commands torque, but the drive of FL_hip takes position",
        ),
    ],
)
def test_a_robot_that_it_cannot_command_is_refused(robot, in_air, contract, command, message):
    with pytest.raises(BadInput, match=message):
        Pilot(Remembering(contract), Twin.load(robot, in_air=in_air), command)
