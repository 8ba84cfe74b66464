"""The causes of mismatch, one file each; `gapless.twin.mechanism` says what a mechanism is."""

from gapless.twin.mechanisms.armature import Armature
from gapless.twin.mechanisms.backlash import Backlash
from gapless.twin.mechanisms.contact import Contact
from gapless.twin.mechanisms.disturbance import Disturbance
from gapless.twin.mechanisms.flex import Flex
from gapless.twin.mechanisms.friction import Friction
from gapless.twin.mechanisms.gains import Gains
from gapless.twin.mechanisms.inertia import Inertia
from gapless.twin.mechanisms.latency import Latency
from gapless.twin.mechanisms.motor import DC, Motor
from gapless.twin.mechanisms.offset import Offset
from gapless.twin.mechanisms.sensors import Sensors
from gapless.twin.mechanisms.table import Table

__all__ = [
    "DC",
    "Armature",
    "Backlash",
    "Contact",
    "Disturbance",
    "Flex",
    "Friction",
    "Gains",
    "Inertia",
    "Latency",
    "Motor",
    "Offset",
    "Sensors",
    "Table",
]
