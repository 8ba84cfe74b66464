"""Rotations, against scipy's."""

import numpy as np
from scipy.spatial.transform import Rotation

from gapless.rotations import cross, multiply, roll_pitch, rotate_back, tipped, up_of

RNG = np.random.default_rng(0)
A, B = (Rotation.random(20, rng=np.random.default_rng(seed)) for seed in (1, 2))
V, W = RNG.normal(size=(2, 20, 3))


def quat(rotation: Rotation) -> np.ndarray:
    return rotation.as_quat(scalar_first=True)


def test_products_and_rotations_are_those_of_scipy():
    product = Rotation.from_quat(multiply(quat(A), quat(B)), scalar_first=True)
    np.testing.assert_allclose(product.as_matrix(), (A * B).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(rotate_back(quat(A), V), A.inv().apply(V), atol=1e-12)
    np.testing.assert_allclose(up_of(quat(A)), A.inv().apply([0.0, 0.0, 1.0]), atol=1e-12)
    np.testing.assert_allclose(cross(V, W), np.cross(V, W), atol=1e-12)


def test_roll_and_pitch_turn_about_x_and_then_about_the_new_y():
    roll, pitch = RNG.uniform(-1, 1, (2, 20))
    expected = Rotation.from_euler("XY", np.column_stack([roll, pitch]))
    found = Rotation.from_quat(roll_pitch(roll, pitch), scalar_first=True)
    np.testing.assert_allclose(found.as_matrix(), expected.as_matrix(), atol=1e-12)


def test_a_robot_that_leans_by_more_than_sixty_degrees_from_how_it_stood_fell():
    lean = np.radians([[0.0, 59.0], [61.0, 180.0]])
    up = up_of(roll_pitch(lean, np.zeros_like(lean)))
    assert tipped(up).tolist() == [[False, False], [True, True]]
    assert tipped(up, up[1, 0]).tolist() == [[True, False], [False, True]]
