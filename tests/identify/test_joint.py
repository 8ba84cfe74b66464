"""One joint alone against the full model: the same parameters give the same motion."""

import numpy as np
import pytest

from gapless.identify.along import course
from gapless.identify.joint import PLACE, QUANTITIES, gather, residuals
from gapless.identify.ladder import problem
from gapless.twin import Twin
from gapless.twin.mechanisms import Friction
from gapless.worlds import home
from gapless.worlds.motion import plan
from gapless.worlds.standin import Spec, StandIn, build, record

FRICTION = {
    "friction.viscous/*": "x1.5",
    "friction.coulomb/*": "x2.0",
    "friction.stribeck/*": 0.05,
    "friction.load/*": 0.1,
    "friction.angle/*": 0.02,
    "latency.action": 0.013,
    "gains.kp/*": "x0.8",
}


def alone(robot: str, change: dict[str, float | str], motion: str = "rich") -> tuple[np.ndarray, np.ndarray]:
    """Errors of joints simulated alone at the true parameters and at the nominal ones: (joints,) each [rad]."""
    timestep = Twin.load(robot).model.opt.timestep
    spec = Spec(robot, tolerance=0, timestep=timestep, change=change, add={"friction": {"full": True}})
    stand_in = StandIn(spec)
    log = record(stand_in, plan(motion, build(spec), 8.0, np.random.default_rng(0)), stand_in.signal)
    twin = Twin.load(robot, add=[Friction(full=True)])
    truth = stand_in.reveal()
    c = course(twin, log)
    qpos, _ = home(twin)
    errors = []
    for j, d in enumerate(twin.drives):
        p = problem(twin, d.name, gather([c], j, float(qpos[d.qpos]), True, twin.model.opt.timestep))
        right = p.base.copy()
        for quantity, name in QUANTITIES.items():
            for full in (name, f"{name}/{d.name}"):
                if full in truth:
                    right[PLACE[quantity]] = truth[full]
        both = residuals(p.data, np.stack([right, p.base]))
        errors.append(np.sqrt((both**2).mean(axis=1)))
    return tuple(np.array(errors).T)


def test_a_single_joint_moves_as_in_the_full_model():
    right, nominal = alone("bench", FRICTION)
    assert np.degrees(right[0]) < 0.05
    assert right[0] < 0.05 * nominal[0]


def test_joints_of_an_arm_alone_along_the_measured_trajectory_move_nearly_as_together():
    """Nearly: what the others do to a joint comes from accelerations estimated at 50 Hz."""
    right, nominal = alone("arm", FRICTION, "prbs")
    assert (right < 0.15 * nominal).all()


@pytest.mark.parametrize("delay", [0.0, 0.0033, 0.02])
def test_a_delay_shifts_the_motion(delay):
    right, nominal = alone("bench", {"latency.action": delay})
    assert np.degrees(right[0]) < 0.05
    assert delay < 0.01 or right[0] < 0.1 * nominal[0]
