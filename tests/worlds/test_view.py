"""The view: both robots where they were, and something to see in a real browser."""

import contextlib
import socket
import subprocess
import threading
import time
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from gapless.robots import imu_of
from gapless.twin import Twin
from gapless.worlds import (
    StandIn,
    StandInSpec as Spec,
    build_standin as build,
    plan_motion as plan,
    record,
    replay,
    view_replay as show,
)
from gapless.worlds.view import GHOST, Pair
from tests.report.browser import browse, needs_browser

TURNED = """
<mujoco model="brick">
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="base" pos="0 0 0.5">
      <freejoint name="free"/>
      <geom type="box" size=".2 .1 .05"/>
      <site name="imu" euler="180 30 20"/>
      <body name="arm" pos="0 0 .05">
        <joint name="shoulder" axis="0 1 0"/>
        <geom type="capsule" size=".02" fromto="0 0 0 0 0 .2"/>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="shoulder" kp="10" kv="1"/></actuator>
</mujoco>
"""


def replayed(spec: Spec, twin: Twin, seconds: float = 1.0):
    log = record(StandIn(spec), plan("rich", build(spec), seconds, np.random.default_rng(0)))
    return replay(twin, log, twin.space.values({"gains.kp/*": 1.5 * twin.space.nominal[twin.space.names.index(kp(twin))]}))


def kp(twin: Twin) -> str:
    return twin.space.match("gains.kp/*")[0]


def test_the_robot_is_where_it_was_measured_and_the_ghost_where_it_was_replayed():
    twin = Twin.load("arm")
    result = replayed(Spec("arm", seed=1), twin)
    pair = Pair(twin, result)
    assert len(pair.time) == result.time.size
    assert np.abs(result.measured["q"][0] - result.replayed["q"][0, 0]).max() > 0.001
    for sample in (0, 20, -1):
        data = pair.data(sample)
        for prefix, q in (("", result.measured["q"][0]), (GHOST, result.replayed["q"][0, 0])):
            for j, joint in enumerate(twin.joints):
                assert data.joint(prefix + joint).qpos[0] == q[sample, j]
        alone = mujoco.MjData(twin.model)
        for d, value in zip(twin.drives, result.measured["q"][0, sample], strict=True):
            alone.qpos[d.qpos] = value
        mujoco.mj_forward(twin.model, alone)
        np.testing.assert_allclose(data.body("hand").xpos, alone.body("hand").xpos, atol=1e-12)
    ghost = [g for g in range(pair.model.ngeom) if pair.model.body(pair.model.geom_bodyid[g]).name.startswith(GHOST)]
    assert len(ghost) == (pair.model.geom_bodyid > 0).sum() / 2
    assert (pair.model.geom_rgba[ghost, 3] < 1).all()


def test_the_camera_looks_at_the_robot():
    twin = Twin.load("quadruped")
    centre, radius = Pair(twin, replayed(Spec("quadruped"), twin)).frame()
    assert np.abs(centre - [0, 0, 0.25]).max() < 0.15
    assert 0.25 < radius < 0.7


def test_the_base_is_drawn_as_it_stood_however_the_imu_is_mounted(tmp_path):
    path = tmp_path / "brick.xml"
    path.write_text(TURNED)
    spec = Spec(str(path), tolerance=0, motion_capture=True)
    robot = StandIn(spec)
    imu = imu_of(robot._twin.model)
    assert imu is not None
    assert abs(imu.quat[0]) < 0.5
    poses = []
    write = robot.write
    robot.write = lambda command: (poses.append(robot._worlds.qpos[0].copy()), write(command))  # type: ignore[method-assign]
    robot._worlds.qvel[0, 3:6] = 0.5, 1.0, -0.3  # it tumbles while it falls
    log = record(robot, plan("stand", build(spec), 0.4, np.random.default_rng(0)))
    twin = Twin.load(str(path))
    pair = Pair(twin, replay(twin, log))
    for prefix in ("", GHOST):
        at = pair.model.joint(prefix + "free").qposadr[0]
        tolerance = 1e-9 if not prefix else 0.05
        np.testing.assert_allclose(pair.qpos[1:-1, at : at + 3], np.array(poses)[1:, :3], atol=tolerance)
        same = np.abs((pair.qpos[1:-1, at + 3 : at + 7] * np.array(poses)[1:, 3:7]).sum(axis=1))
        assert (same > 1 - tolerance).all()


@needs_browser
@pytest.mark.parametrize("robot", ["arm", "quadruped"])
def test_a_browser_shows_both_robots(robot, tmp_path, monkeypatch):
    pytest.importorskip("mjviser", reason="mjviser is not installed: the view in the browser is NOT tested")
    from PIL import Image

    twin = Twin.load(robot)
    result = replayed(Spec(robot, seed=1), twin)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = threading.Event()

    def sleep(_: float) -> None:  # ten pictures a second are enough, and the server ends with the test
        if done.wait(0.1):
            raise SystemExit

    monkeypatch.setattr("gapless.worlds.view.clock", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))

    def serve() -> None:
        with contextlib.suppress(SystemExit):
            show(twin, result, port)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    url, shot = f"http://127.0.0.1:{port}", tmp_path / f"{robot}.png"
    for attempt in range(6):  # a slow machine may still be loading, and a stream that never pauses may hold the clock
        with contextlib.suppress(subprocess.TimeoutExpired):
            browse(url, tmp_path / f"profile{attempt}", "--virtual-time-budget=2000", f"--screenshot={shot}", timeout=40)
        if not shot.exists():
            continue
        picture = np.asarray(Image.open(shot).convert("RGB"), float)
        colour = np.ptp(picture, axis=2) > 40  # the ghost is blue, the floor is grey
        if colour[140:340, 220:420].mean() > 0.03:
            break
    done.set()
    server.join(10)
    assert shot.exists()
    assert colour[140:340, 220:420].mean() > 0.03
    assert colour[420:, 520:].mean() < 0.03
