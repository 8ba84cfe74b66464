"""The causes of mismatch, one file each; `gapless.twin.mechanism` says what a mechanism is."""

import importlib
import pkgutil

from gapless.twin.mechanism import Mechanism
from gapless.twin.mechanisms.armature import Armature
from gapless.twin.mechanisms.contact import Contact
from gapless.twin.mechanisms.disturbance import Disturbance
from gapless.twin.mechanisms.friction import Friction
from gapless.twin.mechanisms.gains import Gains
from gapless.twin.mechanisms.inertia import Inertia
from gapless.twin.mechanisms.latency import Latency
from gapless.twin.mechanisms.motor import Motor
from gapless.twin.mechanisms.offset import Offset
from gapless.twin.mechanisms.sensors import Sensors

USUAL = (Latency, Gains, Motor, Friction, Armature, Inertia, Offset, Contact, Sensors, Disturbance)
"""Those that any robot has, in the order in which they act."""


def _found() -> dict[str, type[Mechanism]]:
    """Every mechanism of this folder by the name of its class: the usual ones first, then file by file."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    mine = [c for module in modules for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
    return {c.__name__: c for c in (*USUAL, *(c for c in mine if issubclass(c, Mechanism)))}


MECHANISMS = _found()


def defaults() -> tuple[Mechanism, ...]:
    """The mechanisms that any robot has, in the order in which they act. Others must be asked for: they change the model."""
    return tuple(kind() for kind in USUAL)
