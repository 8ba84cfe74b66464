"""A twin is a MuJoCo model plus the mechanisms that may be wrong about it.

`Twin` loads and compiles a model and installs mechanisms into it; `Space` names their parameters; a `Belief` says what is
known about them. Each mechanism is one file in `mechanisms/`.
"""

from gapless.twin.belief import Belief, Box, Gaussian, Particles, Point, within_tolerance
from gapless.twin.space import Parameter, Space
from gapless.twin.twin import Twin, defaults

__all__ = [
    "Belief",
    "Box",
    "Gaussian",
    "Parameter",
    "Particles",
    "Point",
    "Space",
    "Twin",
    "defaults",
    "within_tolerance",
]
