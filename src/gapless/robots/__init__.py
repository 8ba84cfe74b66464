"""Robots: five built-in models, loading of any other, and the protocol that every live robot follows.

`load_robot("quadruped")`, `load_robot("my_robot.urdf")` or `load_robot("menagerie:unitree_go2")` gives a `RobotModel`: a
MuJoCo model, its driven joints, base, feet, mass and control period by name, and a sentence for everything that had to be
assumed.
"""

from gapless.robots.assumptions import NO_PERIOD
from gapless.robots.drawing import draw, studio, write_apng
from gapless.robots.drives import (
    ONE_AXIS,
    Drive,
    base_joint,
    driven,
    drives,
    every_drive,
    fits,
    is_dc_motor,
    is_position_servo,
    is_velocity_servo,
    limb_of,
    limbs_of,
    torque_limit,
)
from gapless.robots.imu import IMU, imu_of
from gapless.robots.keyframes import put_keyframes, take_keyframes
from gapless.robots.leg_ik import solve_foot_heights
from gapless.robots.legs import Legs, chain_to, find_legs, geom_points, legs_of, soles_of
from gapless.robots.load import BUILT_IN, MODEL_FILES, choose_joints, files_of, load_robot
from gapless.robots.model import RobotModel, geom_bottoms, home_data, home_key
from gapless.robots.protocol import MIT, Command, Reading, Robot
from gapless.robots.rover import differential_drive
from gapless.robots.shapes import ground, shapes
