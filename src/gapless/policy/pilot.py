"""A policy that commands live robots, hardware or simulated, period by period."""

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.policy.contract import Contract
from gapless.policy.estimate import Estimator
from gapless.policy.network import Policy
from gapless.policy.runtime import Runtime
from gapless.robots import Reading, RobotModel, imu_of

ACTION_KINDS = {"q": "position", "dq": "velocity", "tau": "torque"}
"""What a drive takes, and what a contract calls it."""
OF_AN_IMU = ("gyro", "acc", "gravity", "quat", "velocity")


def check_drives(robot: RobotModel, contract: Contract) -> None:
    """Raise unless the robot's drives take what the policy commands, at its period."""
    for d in (d for d in robot.drives if d.name in contract.joints.names):
        kind = ACTION_KINDS[d.signal]
        if kind != contract.action.kind:
            raise BadInput(f"the policy commands {contract.action.kind}, but the drive of {d.name} takes {kind}")
    period = contract.timing.control_dt
    if period is not None and abs(period - robot.control_dt) > 1e-6:
        raise BadInput(f"the policy runs every {period:g} s, but {robot.name} is commanded every {robot.control_dt:g} s")


class Pilot:
    """Answers each reading of a robot with the targets of its joints.

    pilot = Pilot(load_policy("runs/walk"), twin, (0.5, 0.0, 0.0))
    log = record(robot, [pilot] * 500)
    """

    def __init__(self, policy: Policy, robot: RobotModel, command: Sequence[float], n: int = 1):
        """Refuse a robot that the policy is not for, and a command that it does not take.

        Args:
            policy: its memory is forgotten.
            robot: the model says where the joints are; those that the policy does not know hold their home position.
            command: what the robot is asked for all the time, in the order of the contract's commands.
            n: how many robots of that kind it commands, see `answer`.
        """
        contract = policy.contract
        contract.must_run_on_a_robot()
        self._columns = contract.columns(robot.joints)
        check_drives(robot, contract)
        if len(command) != len(contract.commands):
            names = ", ".join(contract.commands) or "none"
            raise BadInput(f"the policy takes {len(contract.commands)} commands ({names}), not {len(command)}")
        needed = [t.name for t in contract.observation.terms if t.kind in OF_AN_IMU]
        if needed and imu_of(robot.model) is None:
            raise BadInput(f"the policy needs an IMU for {', '.join(needed)}, and the base of {robot.name} does not move")
        self._runtime, self._estimate = Runtime(policy, contract, np.tile(command, (n, 1))), Estimator(robot, contract)
        self._held = np.array([robot.home[d.qpos] if d.signal == "q" else 0.0 for d in robot.drives])

    @property
    def runtime(self) -> Runtime:
        """What was observed, answered and asked for last."""
        return self._runtime

    def __call__(self, reading: Reading) -> Array:
        """Targets of all joints of the one robot, in its order. Shape: (joints,)."""
        return self.answer({name: np.asarray(value)[None] for name, value in reading.items() if name != "time"})[0]

    def answer(self, sensed: Mapping[str, Array]) -> Array:
        """The same for all robots at once: signals (n, columns) to targets. Shape: (n, joints)."""
        order = self._columns
        sensed = {**sensed, **self._estimate(sensed)}
        answered = self._runtime(sensed | {s: sensed[s][:, order] for s in ("q", "dq", "tau") if s in sensed})
        out = np.tile(self._held, (len(answered), 1))
        out[:, order] = answered
        return out
