"""Rotations against MuJoCo's own functions."""

import mujoco
import numpy as np
from hypothesis import given, settings, strategies as st

from gapless import rotations


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=7, max_size=7))
def test_rotations_agree_with_mujoco(numbers):
    a = np.array(numbers[:4]) + [2.0, 0, 0, 0]
    if np.linalg.norm(a) < 1e-3:
        return
    a /= np.linalg.norm(a)
    v = np.array(numbers[4:])
    truth, inverse = np.empty(3), np.empty(4)
    mujoco.mju_negQuat(inverse, a)
    mujoco.mju_rotVecQuat(truth, v, inverse)
    np.testing.assert_allclose(rotations.rotate_back(a[None], v[None])[0], truth, atol=1e-9)
    product = np.empty(4)
    mujoco.mju_mulQuat(product, a, inverse)
    np.testing.assert_allclose(rotations.multiply(a[None], inverse[None])[0], product, atol=1e-12)
