"""Contact: sliding distance, sliding on a slope, sinking in, a step in the way."""

import mujoco
import numpy as np
import pytest

from gapless.twin import Contact
from tests.twin.models import one_world, twin_of

SLED = """
<mujoco>
  <option timestep="0.001" cone="elliptic" impratio="100"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" friction="0.5"/>
    <body name="sled" pos="0 0 0.1">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.2 0.1" mass="2" friction="0.5"/>
    </body>
  </worldbody>
</mujoco>"""


def slide(given: dict[str, float], v0: float, seconds: float, *, step_at: float | None = None) -> np.ndarray:
    twin = twin_of(mujoco.MjSpec.from_string(SLED), Contact(step_at=step_at), control_dt=0.01)
    worlds = one_world(twin, given)
    for _ in range(50):
        worlds.step(np.zeros((1, 0)))  # settle
    worlds.push([v0, 0, 0])
    start = worlds.qpos[0, 0]
    out = []
    for _ in range(round(seconds / 0.01)):
        worlds.step(np.zeros((1, 0)))
        out.append([worlds.qpos[0, 0] - start, worlds.qpos[0, 2]])
    return np.array(out)


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_a_sled_slides_as_far_as_friction_lets_it(mu):
    assert slide({"contact.friction": mu}, 2.0, 2.0)[-1, 0] == pytest.approx(2.0**2 / (2 * mu * 9.81), rel=0.02)


def test_a_sled_slides_down_a_slope_steeper_than_its_friction():
    still = slide({"contact.friction": 0.4, "contact.slope_pitch": 0.35}, 0.0, 1.0)[-1, 0]  # tan 0.35 = 0.365
    moved = slide({"contact.friction": 0.4, "contact.slope_pitch": 0.5}, 0.0, 1.0)
    assert abs(still) < 0.01
    speed = (moved[-1, 0] - moved[-2, 0]) / 0.01
    assert speed == pytest.approx(9.81 * (np.sin(0.5) - 0.4 * np.cos(0.5)) * 1.5, rel=0.05)


def test_a_stiffer_contact_sinks_in_less():
    soft, hard = (0.1 - slide({"contact.stiffness": k}, 0.0, 1.0)[-1, 1] for k in (0.5, 4.0))
    assert soft / hard == pytest.approx(8.0, rel=0.15)


def test_a_step_stops_a_sled_and_a_step_of_no_height_does_not():
    assert slide({"contact.friction": 0.1, "contact.step": 0.05}, 2.0, 1.0, step_at=0.7)[-1, 0] < 0.55
    assert slide({"contact.friction": 0.1}, 2.0, 1.0, step_at=0.7)[-1, 0] > 1.0
