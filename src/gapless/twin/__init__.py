"""A twin is a MuJoCo model plus the mechanisms that may be wrong about it.

`Twin` loads and compiles a model and installs mechanisms into it; `Space` names their parameters; a `Belief` says what is
known about them. Each mechanism is one file in `mechanisms/`.
"""

from gapless.twin import callback, quantities
from gapless.twin.belief import (
    Belief,
    Box,
    Gaussian,
    Particles,
    Plain,
    Point,
    combined,
    load as load_belief,
    save as save_belief,
    table as belief_table,
    within_tolerance,
)
from gapless.twin.drive_law import HIDDEN as DRIVE_HIDDEN, LAGS as DRIVE_LAGS, rows as network_drives, silence as plain_drives
from gapless.twin.export import export as export_settings, read as read_settings
from gapless.twin.given import as_given, known_values, mean_values, stated_gains
from gapless.twin.history import BeliefHistory, entropy as belief_entropy, history, interval as belief_interval
from gapless.twin.mechanism import Bound, Fields, Mechanism, Motion, StepState, field_of
from gapless.twin.mechanisms import MECHANISMS, defaults
from gapless.twin.mechanisms.armature import Armature
from gapless.twin.mechanisms.backlash import LEAST as LEAST_PLAY, Backlash
from gapless.twin.mechanisms.contact import Contact
from gapless.twin.mechanisms.disturbance import Disturbance
from gapless.twin.mechanisms.drive_law import DriveLaw, DriveNet, forward as drive_forward
from gapless.twin.mechanisms.flex import Flex
from gapless.twin.mechanisms.friction import SOLREF as FRICTION_SOLREF, Friction, dry_friction
from gapless.twin.mechanisms.gains import KD, KP, Gains
from gapless.twin.mechanisms.hysteresis import Hysteresis
from gapless.twin.mechanisms.inertia import Inertia
from gapless.twin.mechanisms.latency import Latency
from gapless.twin.mechanisms.motor import DC, Motor
from gapless.twin.mechanisms.offset import Offset
from gapless.twin.mechanisms.residual import AXES as BASE_AXES, Net, Residual, Wrench, base_speed
from gapless.twin.mechanisms.ripple import Ripple
from gapless.twin.mechanisms.sensors import ACCELEROMETER, Sensors
from gapless.twin.mechanisms.table import Table
from gapless.twin.origin import Origin, origin_of
from gapless.twin.recipe import load as load_recipe, mechanism_from, recipe as recipe_of, written as written_recipe
from gapless.twin.space import Parameter, Space
from gapless.twin.stated import Stated
from gapless.twin.twin import Twin
