"""Two robots in the browser: the measured one, and the replayed one as a ghost, with play, pause and a time slider."""

import time as clock
import warnings
from typing import Any

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.robots import base_joint
from gapless.twin import Twin
from gapless.worlds.film import base_poses
from gapless.worlds.replayer import Replay

GHOST = "ghost_"
BLUE = (0.1, 0.4, 1.0, 0.35)


def with_ghost(twin: Twin) -> mujoco.MjModel:
    """The twin's model twice: as it is, and a blue ghost whose names begin with GHOST."""
    spec = twin.spec.copy()
    for key in list(spec.keys):
        spec.delete(key)
    ghost = spec.copy()
    for geom in ghost.geoms:
        geom.rgba, geom.material = BLUE, ""
    for geom in list(ghost.worldbody.geoms):
        ghost.delete(geom)  # one floor is enough
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.attach(ghost, prefix=GHOST, frame=spec.worldbody.add_frame())
    return spec.compile()


def around(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, float]:
    """Centre and radius of a ball around all that is in a scene but its floor [m]."""
    parts = (model.geom_bodyid > 0) & (model.geom_rbound > 0)
    if not parts.any():
        return model.stat.center, float(model.stat.extent)
    places, reach = data.geom_xpos[parts], model.geom_rbound[parts]
    centre = ((places - reach[:, None]).min(axis=0) + (places + reach[:, None]).max(axis=0)) / 2
    return centre, float((np.linalg.norm(places - centre, axis=1) + reach).max())


def open_scene(model: mujoco.MjModel, data: mujoco.MjData, port: int) -> tuple[Any, Any]:
    """A server in the browser, on this computer only, that looks at a scene; and the scene, to be updated."""
    try:
        import viser
        from mjviser import ViserMujocoScene
    except ImportError:
        raise BadInput("viewing needs two more packages: pip install 'gapless[view]'") from None
    server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
    centre, radius = around(model, data)
    server.initial_camera.look_at = tuple(centre)
    server.initial_camera.position = tuple(centre + radius * np.array([1.2, -1.5, 0.7]))
    scene = ViserMujocoScene(server, model, 1)
    scene.camera_tracking_enabled = False  # tracking would move the world, and hide how the base moves
    return server, scene


class Pair:
    """A scene with the measured robot and its ghost, and the poses of both at every sample."""

    def __init__(self, twin: Twin, replay: Replay):
        self.model = with_ghost(twin)
        sampled = ~np.isnan(replay.time)
        self.time = (replay.starts[:, None] - replay.starts[0] + replay.time)[sampled]
        self.qpos = np.tile(self.model.qpos0, (len(self.time), 1))
        for prefix, signals in (("", replay.measured), (GHOST, {s: v[0] for s, v in replay.replayed.items()})):
            self._pose(twin, prefix, {s: v[sampled] for s, v in signals.items()})

    def _pose(self, twin: Twin, prefix: str, signals: dict[str, np.ndarray]) -> None:
        for j, name in enumerate(twin.joints):
            self.qpos[:, self.model.joint(prefix + name).qposadr[0]] = signals["q"][:, j]
        base, poses = base_joint(twin.model), base_poses(twin, signals)
        if base is not None and poses is not None:
            first = self.model.joint(prefix + twin.model.joint(base).name).qposadr[0]
            self.qpos[:, first : first + 7] = poses

    def frame(self) -> tuple[np.ndarray, float]:
        """Centre and radius of a ball around both robots at the start [m]."""
        return around(self.model, self.data(0))

    def data(self, sample: int) -> mujoco.MjData:
        """Both robots at a sample."""
        data = mujoco.MjData(self.model)
        data.qpos[:] = self.qpos[sample]
        mujoco.mj_forward(self.model, data)
        return data


def show(twin: Twin, replay: Replay, port: int = 8080, seconds: float | None = None) -> Any:
    """Serve the pair on a local port until interrupted (or for some seconds); returns the server, stopped."""
    pair = Pair(twin, replay)
    server, scene = open_scene(pair.model, pair.data(0), port)
    playing = server.gui.add_checkbox("play", True)
    slider: Any = server.gui.add_slider("time [s]", 0.0, float(pair.time[-1]), max(float(pair.time[-1]) / 1000, 1e-3), 0.0)
    speed = server.gui.add_slider("speed", 0.1, 2.0, 0.1, 1.0)
    server.gui.add_markdown("solid: measured, blue: replayed")
    print(f"open http://127.0.0.1:{server.get_port()} (Ctrl-C ends)", flush=True)
    started = last = clock.monotonic()
    try:
        while seconds is None or clock.monotonic() - started < seconds:
            now = clock.monotonic()
            if playing.value:
                slider.value = (slider.value + (now - last) * speed.value) % float(pair.time[-1])
            last = now
            scene.update_from_mjdata(pair.data(int(np.searchsorted(pair.time, slider.value).clip(0, len(pair.time) - 1))))
            clock.sleep(1 / 30)
    finally:
        server.stop()
    return server
