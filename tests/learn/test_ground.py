"""Ground that robots learn on: against the engine's own rays and contacts, and against slopes and steps worked out by hand."""

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.learn import ground as grounds
from gapless.learn.environment import Environment
from gapless.learn.ground import KINDS, PAD, ROUGH, SLOPE, STEP, TERRAINS, TILE, Ground, ground_of, make, on_terrain
from gapless.learn.presets import draw_from
from gapless.learn.tasks import task_of
from gapless.twin import Twin


@pytest.fixture(scope="module")
def flat():
    return Twin.load("quadruped")


@pytest.fixture(scope="module")
def on(flat):
    return {kind: on_terrain(flat, kind, np.random.default_rng(2)) for kind in TERRAINS}


def play(twin, task="stand", n=8, seed=0, belief=None, threads=1):
    return Environment(twin, task_of(task, twin), n, belief, np.random.default_rng(seed), threads=threads)


def strip(ground, level):
    """Heights of the tiles of one hardness."""
    side = round(TILE / ground.cell)
    first = (grounds.BORDER + level) * side
    return ground.heights[first : first + side + 1]


def put(environment, x, y):
    """Robots as they are, but elsewhere, their lowest foot on the ground."""
    scene, qpos = environment.scene, environment.worlds.qpos
    at = scene.base_qpos
    qpos[:, at], qpos[:, at + 1], qpos[:, at + 2] = x, y, 0.0
    q = qpos[:, [d.qpos for d in environment.twin.drives]]
    low = scene.feet_at(q, 0 * q, qpos[:, at + 3 : at + 7], qpos[:, at : at + 3])[2]
    qpos[:, at + 2] = -low.min(axis=1)
    scene.update()


@pytest.mark.parametrize("kind", TERRAINS[1:])
def test_heights_are_those_that_a_ray_of_the_engine_meets(on, kind):
    model, ground = on[kind].model, ground_of(on[kind])
    data = mujoco.MjData(model)
    data.qpos[:3] = 0.0, -9.0, 20.0
    mujoco.mj_forward(model, data)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-15.9, 15.9, 200), rng.uniform(-9.9, 45.9, 200)
    down, hit = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
    met = [5.0 - mujoco.mj_ray(model, data, np.array([*at, 5.0]), down, None, 1, -1, hit) for at in zip(x, y, strict=True)]
    np.testing.assert_allclose(ground.height(x, y), met, atol=1e-6)
    assert np.ptp(met) > 0.05
    assert ground.height(1e3, 0.0) == ground.height(16.0, 0.0)  # beyond the edge as at the edge
    assert ground.height(np.array([np.nan, np.inf, -np.inf]), np.nan).shape == (3,)  # and no crash


def test_hardness_rises_from_a_flat_strip_at_the_origin_to_what_is_said():
    rough, steps, slopes = (make(kind, np.random.default_rng(3)) for kind in KINDS)
    for ground in (rough, steps, slopes):
        assert not strip(ground, 0)[:-1].any()
        assert not ground.height(*np.random.default_rng(0).uniform(-1.9, 1.9, (2, 50))).any()
    assert np.abs(rough.heights).max() == pytest.approx(ROUGH)
    hardest = np.std(strip(rough, 9)[:-1])
    for level in range(1, 10):
        assert np.std(strip(rough, level)[:-1]) == pytest.approx(hardest * level / 9, rel=0.1)
        risers = np.abs(np.diff(strip(steps, level)[:-1], axis=1))
        assert risers.max() == pytest.approx(STEP * level / 9)
        assert np.unique(risers.round(9)).size == 2  # a step or nothing
        angle = np.arctan(np.abs(np.diff(strip(slopes, level)[:-1], axis=1)) / slopes.cell)
        assert angle.max() == pytest.approx(SLOPE * level / 9)


def test_mixed_ground_has_tiles_of_every_kind():
    ground = make("mixed", np.random.default_rng(0))
    side, found = round(TILE / ground.cell), set()
    hardest = strip(ground, 9)[:-1]
    for tile in range(8):
        heights = hardest[:, tile * side : (tile + 1) * side].round(9)
        # steps have few heights, rough ground none that is far
        found.add("steps" if np.unique(heights).size < 8 else "rough" if np.abs(heights).max() <= ROUGH else "slopes")
    assert found == set(KINDS)


def test_the_same_seed_gives_the_same_ground_and_another_seed_another():
    same = [make("mixed", np.random.default_rng(1)).heights for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(same[0], make("mixed", np.random.default_rng(2)).heights)


@pytest.mark.parametrize("kind", TERRAINS[1:])
def test_starts_are_as_hard_as_asked_and_level(on, kind):
    ground, rng = ground_of(on[kind]), np.random.default_rng(0)
    wanted = rng.uniform(0, 1, 200)
    place, hardness = ground.start(wanted, rng)
    assert np.abs(hardness - wanted).max() < 0.11
    assert set(ground.start(np.array([0.0, 1.0]), rng)[1]) == {0.0, 1.0}
    off = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(-1, 2) * (PAD - 0.01)
    around = place[:, None] + off
    np.testing.assert_allclose(np.ptp(ground.height(around[..., 0], around[..., 1]), axis=1), 0.0, atol=1e-12)
    assert not ground.beyond(place).any()


@pytest.mark.parametrize("degrees", [0.0, 10.0, 20.0, 45.0])
def test_a_ball_that_rests_on_a_slope_touches_it(degrees):
    angle, radius = np.deg2rad(degrees), 0.022
    x = np.tile(np.arange(41) * 0.1 - 2.0, (41, 1))
    ground = Ground(np.tan(angle) * x, 0.1, (-2.0, -2.0), np.zeros((1, 1, 2)))
    rng = np.random.default_rng(0)
    centre = rng.uniform(-1.5, 1.5, (50, 3))
    for lifted in (0.0, 0.03):
        centre[:, 2] = np.tan(angle) * centre[:, 0] + radius / np.cos(angle) + lifted
        straight = np.tile([1.0, 0, 0, 0], (50, 1))
        gap = ground.clearance(np.zeros((50, 1, 1, 3)), np.full((1, 1), radius), straight, centre)
        np.testing.assert_allclose(gap[:, 0], lifted, atol=0.0015)


@pytest.mark.parametrize(("robot", "missed"), [("quadruped", 0.01), ("biped", 0.06)])
@pytest.mark.parametrize("kind", KINDS)
def test_feet_that_touch_are_those_that_the_engine_finds(robot, missed, kind):
    twin = on_terrain(Twin.load(robot), kind, np.random.default_rng(2))
    environment, rng, n = play(twin, n=24), np.random.default_rng(5), 24
    environment.reset()
    put(environment, rng.uniform(-8, 8, n), rng.uniform(16, 44, n))
    scene, data = environment.scene, mujoco.MjData(twin.model)
    feet = [twin.model.body(name).id for name in scene.legs.names]
    real, ours, low = [], [], []
    for k in range(40):
        environment.step(0.5 * rng.standard_normal((n, len(twin.joints))))
        if k % 8:
            continue
        for i in range(n):
            data.qpos[:], data.qvel[:] = environment.worlds.qpos[i], environment.worlds.qvel[i]
            mujoco.mj_forward(twin.model, data)
            bodies = twin.model.geom_bodyid[np.array([(c.geom1, c.geom2) for c in data.contact], int).reshape(-1, 2)]
            real.append([(bodies == f).any() for f in feet])
        ours += scene.contact.tolist()
        low += scene.foot_height.tolist()
    real, ours, low = np.array(real), np.array(ours), np.array(low)
    assert 0.3 < real.mean() < 0.9
    assert (real & ~ours).sum() <= missed * real.sum()  # at edges: a biped's soles are looked at in five points
    assert not (low[~real] < -0.001).any()  # what the engine leaves free is not in the ground


def test_level_ground_is_seen_as_the_floor_is(on, flat):
    level, floor = play(on["rough"], n=4), play(flat, n=4)
    for environment in (level, floor):
        environment.reset()
    floor.worlds.qpos[:], floor.worlds.qvel[:] = level.worlds.qpos, level.worlds.qvel
    for environment in (level, floor):
        put(environment, 0.1, 0.2)
    np.testing.assert_allclose(level.worlds.qpos, floor.worlds.qpos, atol=1e-12)
    for name in ("height", "foot_height", "foot_speed"):
        np.testing.assert_allclose(getattr(level.scene, name), getattr(floor.scene, name), atol=1e-12)


def test_a_quadruped_stands_anywhere_on_the_roughest_ground(on):
    environment, rng = play(on["rough"], n=32), np.random.default_rng(0)
    environment.hardness = 0.0  # no pushes
    environment.reset()
    put(environment, rng.uniform(-8, 8, 32), rng.uniform(35, 45, 32))  # not only where episodes start
    assert np.ptp(ground_of(on["rough"]).height(*environment.scene.position[:, :2].T)) > 0.03
    for _ in range(150):
        step = environment.step(np.zeros((32, 12)))
        assert not step.failed.any()
    assert np.abs(environment.scene.height - environment.scene.home_height).max() < 0.08


def test_height_counts_from_the_ground_in_a_pit_as_on_a_hill(on):
    environment = play(on["steps"], n=64)
    environment.reset()
    scene = environment.scene
    assert scene.position[:, 2].min() < 0.0 < 0.5 < scene.position[:, 2].max()
    assert np.abs(scene.height - scene.home_height).max() < 0.05
    np.testing.assert_allclose(scene.foot_height.min(axis=1), 0.0, atol=1e-12)
    assert not environment.step(np.zeros((64, 12))).failed.any()


def test_episodes_start_on_ground_no_harder_than_the_curriculum_says_facing_any_way(on):
    environment = play(on["mixed"], n=200)
    environment.hardness = 0.35
    environment.reset()
    assert set((environment.ground_hardness * 9).round().astype(int)) == {0, 1, 2, 3}
    assert (np.abs(environment.scene.heading.mean(axis=0)) < 0.25).all()
    np.testing.assert_allclose(environment.scene.up[:, 2], 1.0)


def test_a_robot_that_walks_off_the_ground_runs_out_of_time_and_does_not_fall(on):
    environment = play(on["rough"], n=8)
    environment.reset()
    before = environment.scene.position.copy()
    environment.worlds.qpos[3, 1] = 45.8
    environment.worlds.qpos[5, 0] = -15.9
    step = environment.step(np.zeros((8, 12)))
    assert step.timeout.tolist() == [i in (3, 5) for i in range(8)]
    assert not step.failed.any()
    assert not step.terms["fall"].any()
    assert not ground_of(on["rough"]).beyond(environment.scene.position).any()
    np.testing.assert_allclose(environment.scene.position[0], before[0], atol=0.05)


def test_the_same_seed_gives_the_same_bits_at_any_number_of_threads_on_terrain(on):
    wide, out = draw_from("wide", on["mixed"]), []
    for threads in (1, 2):
        environment, rng = play(on["mixed"], "velocity", belief=wide, threads=threads), np.random.default_rng(3)
        environment.reset(spread=True)
        out.append([environment.step(0.3 * rng.standard_normal((8, 12))).observation["critic"] for _ in range(20)])
    np.testing.assert_array_equal(*out)
    assert np.isfinite(out[0]).all()


def test_a_robot_that_lies_on_steps_has_room_for_its_contacts(on):
    environment = play(on["steps"], n=16)
    environment.reset()
    worlds = environment.worlds
    worlds.qpos[:, 3:7] = 0.0, 1.0, 0.0, 0.0  # on its back, half a metre up
    worlds.qpos[:, 2] += 0.3
    for _ in range(50):
        worlds.step(worlds.home_command)
        assert not worlds.failures


def test_a_rover_starts_on_its_wheels():
    twin = on_terrain(Twin.load("rover"), "slopes", np.random.default_rng(0))
    environment = play(twin, "drive", n=8)
    environment.reset()
    for _ in range(50):
        step = environment.step(np.zeros((8, 2)))
        assert not step.failed.any()
    assert np.abs(environment.scene.height - environment.scene.home_height).max() < 0.02


def test_flat_terrain_is_the_very_same_twin(flat):
    assert on_terrain(flat, "flat", np.random.default_rng(0)) is flat
    assert ground_of(flat) is None


def test_the_floor_keeps_its_grip_and_parameters(on, flat):
    model, floor = on["rough"].model, flat.model.geom("floor")
    ground = model.geom("floor")
    assert ground.type[0] == mujoco.mjtGeom.mjGEOM_HFIELD
    np.testing.assert_array_equal(ground.friction, floor.friction)
    assert (ground.contype[0], ground.conaffinity[0]) == (floor.contype[0], floor.conaffinity[0])
    assert on["rough"].space.names == flat.space.names
    np.testing.assert_array_equal(on["rough"].space.nominal, flat.space.nominal)


def test_terrain_that_does_not_exist_or_cannot_be_used_is_refused(flat):
    rng = np.random.default_rng(0)
    with pytest.raises(BadInput, match="unknown terrain 'rouhg': did you mean 'rough'"):
        on_terrain(flat, "rouhg", rng)
    with pytest.raises(BadInput, match="arm has a fixed base, and terrain is for robots that move: use flat"):
        on_terrain(Twin.load("arm"), "rough", rng)
    spec = flat.spec.copy()
    spec.delete(spec.geom("floor"))
    bare = Twin.build(spec, flat.mechanisms, flat.control_dt, "bare")
    with pytest.raises(BadInput, match="terrain replaces the floor, and the model has none"):
        on_terrain(bare, "rough", rng)


WALLED = """
<mujoco>
  <worldbody>
    <geom name="wall" type="plane" size="0 0 1" pos="3 0 0" euler="0 -90 0"/>
    {floor}
    <body name="base" pos="0 0 0.5"><freejoint/><geom size="0.1"/>
      <body><joint name="hip"/><geom size="0.05" pos="0 0 -0.3"/></body></body>
  </worldbody>
  <contact><pair geom1="wall" geom2="floor"/></contact>
  <actuator><position joint="hip" kp="10"/></actuator>
</mujoco>
"""


def walled(tmp_path, floor):
    (tmp_path / "walled.xml").write_text(WALLED.format(floor=floor))
    return Twin.load(str(tmp_path / "walled.xml"))


def test_the_level_plane_becomes_the_ground_and_others_no_longer_touch(tmp_path):
    twin = on_terrain(walled(tmp_path, '<geom name="floor" type="plane" size="0 0 1"/>'), "rough", np.random.default_rng(0))
    model = twin.model
    assert model.geom("floor").type == mujoco.mjtGeom.mjGEOM_HFIELD
    assert model.geom("wall").type == mujoco.mjtGeom.mjGEOM_PLANE
    assert not model.geom("wall").contype and not model.geom("wall").conaffinity


@pytest.mark.parametrize("inside", ['<body pos="0 0 -0.2">{}</body>', '<frame pos="0 0 -0.2">{}</frame>'])
def test_a_floor_that_is_moved_by_a_body_or_frame_is_refused(tmp_path, inside):
    twin = walled(tmp_path, inside.format('<geom name="floor" type="plane" size="0 0 1"/>'))
    with pytest.raises(BadInput, match="directly in the worldbody"):
        on_terrain(twin, "rough", np.random.default_rng(0))
