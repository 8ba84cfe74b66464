"""Feet are lifted to where they should be, by the engine's own kinematics."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.robots import legs_of, solve_foot_heights
from gapless.twin import Twin


def feet(twin, moved):
    """Places and turns of the feet's geoms, seen from the base. Shapes: (rows, geoms, 3), (rows, geoms, 3, 3)."""
    model, data = twin.model, mujoco.MjData(twin.model)
    geoms = [g for g in range(model.ngeom) if model.geom(g).name.endswith("foot")]
    places, turns = [], []
    for row in moved:
        data.qpos[:] = twin.home
        data.qpos[[d.qpos for d in twin.drives]] += row
        mujoco.mj_kinematics(model, data)
        places.append(data.geom_xpos[geoms].copy())
        turns.append(data.geom_xmat[geoms].reshape(-1, 3, 3).copy())
    return np.array(places), np.array(turns)


@pytest.mark.parametrize("name", ["quadruped", "biped"])
def test_each_foot_goes_straight_up_and_the_others_stay(name):
    twin = Twin.load(name)
    legs = legs_of(twin)
    height = np.vstack([0.06 * np.eye(len(legs)), np.zeros(len(legs)), np.full(len(legs), 0.03)])
    moved = solve_foot_heights(twin, legs, height)
    (places, turns), (there, level) = feet(twin, moved), feet(twin, 0 * moved)
    np.testing.assert_allclose(places - there, height[:, :, None] * [0.0, 0.0, 1.0], atol=1e-6)
    assert (moved[len(legs)] == 0.0).all()
    if name == "biped":  # six joints a leg can keep its sole level too
        np.testing.assert_allclose(turns, level, atol=1e-4)


def test_a_robot_with_straight_legs_is_told_to_bend_its_knees():
    twin = Twin.load("biped")
    twin.home[7:] = 0.0
    with pytest.raises(BadInput, match="biped cannot lift its feet by 0.06 m from its home pose: .* bent knees"):
        solve_foot_heights(twin, legs_of(twin), np.array([[0.06, 0.0]]))
