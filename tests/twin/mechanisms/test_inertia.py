"""Inertia: what inverse dynamics finds is what was set, and nothing unphysical can be set."""

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gapless.errors import BadInput
from gapless.twin import Inertia, Twin
from gapless.twin.mechanisms.inertia import TENSOR, second_moments
from tests.twin.models import pendulum, twin_of

FREE = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="box">
      <freejoint name="root"/>
      <inertial pos="0.02 -0.01 0.03" mass="2" diaginertia="0.02 0.03 0.04"/>
    </body>
  </worldbody>
</mujoco>"""


@pytest.fixture(scope="module")
def box() -> Twin:
    return twin_of(mujoco.MjSpec.from_string(FREE), Inertia(tensor="*"))


def identify(model: mujoco.MjModel) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and tensor about it of a free body, by linear regression on inverse dynamics."""
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    rows, wrench = [], []
    for _ in range(40):
        data.qpos[:] = [0, 0, 0, 1, 0, 0, 0]
        data.qvel[:] = [0, 0, 0, *rng.normal(size=3)]
        data.qacc[:] = rng.normal(size=6)
        mujoco.mj_inverse(model, data)
        a, alpha, w = data.qacc[:3] - model.opt.gravity, data.qacc[3:], data.qvel[3:]
        skew = lambda v: np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])  # noqa: E731
        over = lambda v: np.array([[v[0], v[1], v[2], 0, 0, 0], [0, v[0], 0, v[1], v[2], 0], [0, 0, v[0], 0, v[1], v[2]]])  # noqa: E731
        turning = skew(alpha) + skew(w) @ skew(w)
        rows.append(
            np.block([[a[:, None], turning, np.zeros((3, 6))], [np.zeros((3, 1)), -skew(a), over(alpha) + skew(w) @ over(w)]])
        )
        wrench.append(data.qfrc_inverse.copy())
    x = np.linalg.lstsq(np.vstack(rows), np.concatenate(wrench), rcond=None)[0]
    mass, com = x[0], x[1:4] / x[0]
    about_origin = np.array([[x[4], x[5], x[6]], [x[5], x[7], x[8]], [x[6], x[8], x[9]]])
    return mass, com, about_origin - mass * (com @ com * np.eye(3) - np.outer(com, com))


def test_mass_and_centre_of_mass_are_recovered_by_inverse_dynamics(box):
    model = box.compile(box.space.values({"inertia.mass/box": 2.7, "inertia.com_y/box": 0.05}))
    mass, com, tensor = identify(model)
    assert mass == pytest.approx(2.7, rel=1e-9)
    np.testing.assert_allclose(com, [0.02, 0.05, 0.03], atol=1e-9)
    np.testing.assert_allclose(tensor, np.diag([0.02, 0.03, 0.04]) * 2.7 / 2, atol=1e-9)


def test_the_tensor_is_the_stretched_mass_distribution(box):
    stretch = {"xx": 0.2, "yy": -0.1, "zz": 0.05, "xy": 0.3, "xz": -0.1, "yz": 0.2}
    model = box.compile(box.space.values({f"inertia.tensor_{k}/box": v for k, v in stretch.items()}))
    _, _, tensor = identify(model)
    c = np.zeros((3, 3))
    for key, (i, j) in TENSOR.items():
        c[i, j] = np.exp(stretch[key]) if i == j else stretch[key]
    moments = c @ np.diag(second_moments(np.array([0.02, 0.03, 0.04]))) @ c.T
    np.testing.assert_allclose(tensor, np.trace(moments) * np.eye(3) - moments, atol=1e-9)


def test_a_payload_is_a_point_mass_at_the_origin_of_its_body(box):
    mass, com, tensor = identify(box.compile(box.space.values({"inertia.payload": 0.5})))
    at = np.array([0.02, -0.01, 0.03])
    assert mass == pytest.approx(2.5)
    np.testing.assert_allclose(com, at * 2 / 2.5, atol=1e-9)
    added = 2 * 0.5 / 2.5 * (at @ at * np.eye(3) - np.outer(at, at))
    np.testing.assert_allclose(tensor, np.diag([0.02, 0.03, 0.04]) + added, atol=1e-9)


def test_a_payload_at_the_pivot_does_not_slow_a_pendulum():
    twin = twin_of(pendulum(), Inertia(payload="arm"))
    model = twin.compile(twin.space.values({"inertia.payload": 1.0}))
    assert model.body_mass[1] == pytest.approx(2.0)
    assert model.dof_M0[0] == pytest.approx(0.25, rel=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=11, max_size=11))
def test_no_value_within_the_bounds_gives_an_unphysical_body(box, unit):
    space = box.space
    values = space.low + (np.array(unit) + 1) / 2 * (space.high - space.low)
    model = box.compile(values)
    assert model.body_mass[1] > 0
    assert (second_moments(model.body_inertia[1]) >= -1e-12 * model.body_inertia[1].max()).all()
    assert np.linalg.norm(model.body_iquat[1]) == pytest.approx(1.0)


def test_an_unknown_link_names_the_nearest():
    with pytest.raises(BadInput, match="unknown link 'amr'.*did you mean 'arm'"):
        twin_of(pendulum(), Inertia(links="amr"))
    with pytest.raises(BadInput, match="unknown link 'tray'"):
        twin_of(pendulum(), Inertia(payload="tray"))
