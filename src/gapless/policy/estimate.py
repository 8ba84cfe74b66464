"""Estimates: what a filter on the robot gives, from its readings alone; the same in training and on the robot."""

from collections.abc import Mapping

import numpy as np

from gapless.arrays import Array
from gapless.policy.contract import Contract
from gapless.robots import RobotModel, chain_to, imu_of, legs_of
from gapless.rotations import multiply, rotate_back


class Estimator:
    """The estimated terms of a contract: "velocity" of the base, from its legs, and "tip" of an arm, from its encoders.

    estimator = Estimator(robot, contract)
    observation = observer({**readings, **estimator(readings)}, command, action)
    """

    def __init__(self, robot: RobotModel, contract: Contract):
        """Find out what the contract needs; the model says where the joints are.

        Args:
            robot: its model.
            contract: of the policy. A term of kind "tip" names in its frame what it follows: `site:NAME` or `body:NAME`.
        """
        terms = {t.kind: t for t in contract.observation.terms}
        self._seat = None if (imu := imu_of(robot.model)) is None or imu.quat[0] == 1.0 else imu.quat
        self._legs = legs_of(robot) if "velocity" in terms else None
        self._tip = chain_to(robot, terms["tip"].frame) if "tip" in terms else None

    def __call__(self, readings: Mapping[str, Array]) -> dict[str, Array]:
        """Estimates by kind, from readings with joints in the model's order. Shape of each: (n, 3)."""
        estimates: dict[str, Array] = {}
        q, dq = readings["q"], readings["dq"]
        if self._legs is not None:
            quat, gyro = readings["quat"], readings["gyro"]
            if self._seat is not None:  # from the IMU's axes to those of the base, where the legs are
                back = self._seat * [1, -1, -1, -1]
                quat, gyro = multiply(quat, back), rotate_back(back, gyro)
            estimates["velocity"] = self._legs.velocity(q, dq, quat, gyro)
        if self._tip is not None:
            upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(q), 1))
            estimates["tip"] = self._tip.feet(q, dq, upright)[0][:, 0]
        return estimates
