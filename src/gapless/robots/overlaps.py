"""Links of a URDF that are inside each other at home: the format cannot say that they are not to touch, so it is assumed."""

import mujoco

from gapless.report import few
from gapless.robots.model import home_data

DEEP = 0.001
"""m that links are inside each other; less is a touch."""


def part_overlaps(spec: mujoco.MjSpec) -> list[str]:
    """Let links that overlap in the home pose not collide, in place; what was assumed.

    Planners keep the same list in a file of their own (SRDF: collisions that are disabled by default). Left as they are, such
    links push the robot out of its pose for as long as it is simulated.
    """
    model = spec.copy().compile()
    data = home_data(model)
    mujoco.mj_fwdPosition(model, data)
    inside = {tuple(sorted(model.geom_bodyid[c.geom].tolist())) for c in data.contact if c.dist < -DEEP and min(c.geom) >= 0}
    pairs = [(model.body(one).name, model.body(other).name) for one, other in sorted(inside)]
    for one, other in pairs:
        spec.add_exclude(bodyname1=one, bodyname2=other)
    named = few(f"{one} and {other}" for one, other in pairs)
    return [f"links that are inside each other in the home pose are taken not to collide: {named}"] if pairs else []
