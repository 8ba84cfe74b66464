"""Parity: whether an engine moves the same robot as MuJoCo: a step of each joint, a drop, standing still, a sliding block."""

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.check.engines.engine_world import Base
from gapless.check.engines.load import EngineRobot, build
from gapless.robots import Drive, RobotModel, imu_of
from gapless.twin import Twin

STEP_SECONDS, STAND_SECONDS = 0.4, 2.0
STEP = 0.2
"""Of a position target [rad]; velocities and torques by this share of their largest."""
DROP = 0.05
"""Height of the fall [m]."""
SLIDE = 1.0
"""Speed of the block at first [m/s]."""
OF_STEP, OF_HEIGHT, OF_SLIDE = 0.1, 0.03, 0.05
"""Tolerances as shares: of the joint's motion, of the height at home, of the stopping distance."""
GRIP = 0.6
BLOCK = f"""<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="0 0 1" friction="{GRIP}"/>
<body name="block" pos="0 0 0.05"><freejoint/><geom type="box" size="0.1 0.1 0.05" mass="2" friction="{GRIP}"/>
<body name="pin"><joint name="pin" axis="0 0 1"/><geom size="0.02" mass="0.02" contype="0" conaffinity="0"/></body></body>
</worldbody></mujoco>"""
"""With a pin in it that turns about the vertical, as not every engine takes a robot without joints."""


@dataclass(frozen=True)
class Agreement:
    """One experiment in one engine."""

    engine: str
    test: str
    what: str
    """What was compared."""
    figure: float
    """How far apart they are, in `unit`."""
    tolerance: float
    unit: str

    @property
    def good(self) -> bool:
        return self.figure <= self.tolerance


def home_state(robot: RobotModel, model: EngineRobot) -> tuple[Array, Base]:
    """Joint positions in the canonical order, and the base at rest, at home."""
    q = np.array([robot.home[int(robot.model.joint(j.name).qposadr[0])] for j in model.model.joints])
    imu = imu_of(robot.model)
    if imu is None:
        return q, Base(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3), np.zeros(3))
    return q, Base(robot.home[imu.qpos :][:3].copy(), robot.home[imu.qpos + 3 :][:4].copy(), np.zeros(3), np.zeros(3))


def home_command(robot: RobotModel) -> Array:
    """Of the drives. Shape: (drives,)."""
    return np.asarray(robot.home_command[[d.control for d in robot.drives]])


def parity(engine: str, twin: Twin) -> list[Agreement]:
    """The experiments that a robot can do, in one engine against MuJoCo (a drop and a block against the closed form)."""
    out = [_steps(engine, twin), _slide(engine)]
    return out + [*_drop(engine, twin), _stand(engine, twin)] if twin.floating else out


def _steps(engine: str, twin: Twin) -> Agreement:
    """A step of each joint's command with the base held; the worst joint."""
    held = Twin.load(twin, mechanisms=(), in_air=True) if twin.floating else twin
    moved = [_step_responses(held, name) for name in ("mujoco", engine)]
    size = np.maximum(np.abs(moved[0]).max(axis=1), 1e-6)
    apart = np.sqrt(((moved[1] - moved[0]) ** 2).mean(axis=1)) / size
    worst = int(apart.argmax())
    what = f"RMS difference of {twin.joints[worst]}, the worst joint, as a share of its motion"
    return Agreement(engine, "single-joint step", what, float(apart[worst]), OF_STEP, "")


def _step_responses(robot: RobotModel, engine: str) -> Array:
    """How each joint moves when its own command steps, after it has settled at home. Shape: (drives, periods)."""
    here = build(engine, robot.model, robot.home, robot.control_dt, robot.name)
    out = []
    for i, drive in enumerate(robot.drives):
        command = home_command(robot)
        here.start(*home_state(robot, here))
        here.hold(command, STEP_SECONDS)
        before = here.world.joints()[0][i]
        command[i] += _size(robot, drive)
        seen = []
        for _ in range(round(STEP_SECONDS / robot.control_dt)):
            here.hold(command, robot.control_dt)
            seen.append(here.world.joints()[0][i] - before)
        out.append(seen)
    return np.array(out)


def _size(robot: RobotModel, drive: Drive) -> float:
    """Of the step, away from the nearer end of the joint's range."""
    here = robot.home[drive.qpos]
    sign = -1.0 if math.isfinite(drive.high) and drive.high - here < here - drive.low else 1.0
    ends = robot.model.actuator_ctrlrange[drive.actuator] if robot.model.actuator_ctrllimited[drive.actuator] else (-1.0, 1.0)
    return sign * STEP * (1.0 if drive.signal == "q" else float(np.abs(ends).max()))


def _dropped(engine: str, twin: Twin) -> tuple[Array, float]:
    """Height of the base by period in a fall with the joints held, and the time step."""
    here = build(engine, twin.model, twin.home, twin.control_dt, twin.name)
    q, base = home_state(twin, here)
    here.start(q, Base(base.pos + [0.0, 0.0, DROP], base.quat, base.velocity, base.turn))
    heights = []
    for _ in range(round(STAND_SECONDS / twin.control_dt)):
        here.hold(home_command(twin), twin.control_dt)
        heights.append(here.world.base().pos[2])
    return np.array(heights), here.timestep


def _drop(engine: str, twin: Twin) -> list[Agreement]:
    """Free fall of the centre, against the closed form, and where the robot comes to rest, against MuJoCo."""
    (reference, _), (fall, step) = _dropped("mujoco", twin), _dropped(engine, twin)
    gravity = -float(twin.model.opt.gravity[2])
    free = max(1, int(math.sqrt(2 * DROP / gravity) / twin.control_dt))
    time = twin.control_dt * np.arange(1, free + 1)
    start = float(twin.home[imu_height(twin)]) + DROP
    error = float(np.abs(fall[:free] - (start - gravity * time**2 / 2)).max())
    # a step behind in speed is a step's fall behind in place; drives that pull legs together move the base as well
    allowed = gravity * float(time[-1]) * step + OF_HEIGHT * DROP
    rest = float(abs(fall[-1] - reference[-1]))
    height = float(twin.home[imu_height(twin)])
    return [
        Agreement(engine, "drop", "distance from free fall until it lands", error, allowed, "m"),
        Agreement(engine, "drop", "height at which it comes to rest, against MuJoCo", rest, OF_HEIGHT * height, "m"),
    ]


def imu_height(twin: Twin) -> int:
    """Where the height of the base is in qpos."""
    imu = imu_of(twin.model)
    assert imu is not None
    return imu.qpos + 2


def _stand(engine: str, twin: Twin) -> Agreement:
    """How far the base of a robot that holds its home pose moves in the second second: nothing may creep or shake."""
    here = build(engine, twin.model, twin.home, twin.control_dt, twin.name)
    here.start(*home_state(twin, here))
    here.hold(home_command(twin), STAND_SECONDS / 2)
    before = here.world.base().pos
    here.hold(home_command(twin), STAND_SECONDS / 2)
    moved = float(np.linalg.norm(here.world.base().pos - before))
    height = float(twin.home[imu_height(twin)])
    return Agreement(engine, "stand still", "how far the base moves in a second", moved, OF_HEIGHT * height, "m")


def _slide(engine: str) -> Agreement:
    """How far a block slides, against v^2 / (2 mu g)."""
    model = mujoco.MjModel.from_xml_string(BLOCK)
    here = build(engine, model, model.qpos0, 0.01, "block")
    here.start(np.zeros(1), Base(np.array([0.0, 0.0, 0.05]), np.array([1.0, 0, 0, 0]), np.array([SLIDE, 0, 0]), np.zeros(3)))
    here.hold(np.zeros(0), 1.0)
    expected = SLIDE**2 / (2 * GRIP * 9.81)
    error = abs(float(here.world.base().pos[0]) / expected - 1)
    return Agreement(engine, "sliding block", f"stopping distance, against v²/2μg = {expected:.3f} m", error, OF_SLIDE, "")
