"""The view: robot and twin in the browser with live plots, in a process of its own that the loop never waits for.

`View` starts it and sends rows of numbers through a pipe; a row that does not fit is left out. On this computer only, unless a
host is named: then there is a gate before it that asks for a token.
"""

import os
import subprocess
import sys
import time
from collections import deque
from typing import Any

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.deploy.gate import Gate
from gapless.robots import base_joint
from gapless.twin import Twin
from gapless.worlds import GHOST, open_scene, with_ghost

LOCAL = "127.0.0.1"
PLOTTED = ("gap (1: edge of the envelope)", "robot against twin [mrad]", "largest torque [share of its limit]")
HEAD = 2 + len(PLOTTED)
"""Numbers of a row before the poses: time [s], rung, and what is plotted."""
KEPT = 300
"""Rows that a plot shows: 15 s."""


class View:
    """The pipe to the view's process."""

    def __init__(self, model: str, joints: int, host: str = LOCAL, port: int = 8080):
        words = [sys.executable, "-c", "from gapless.deploy.view import serve; serve()", model, host, str(port)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        self._pipe, self._row = self._process.stdin.fileno(), np.zeros(HEAD + 4 + 2 * joints)
        os.set_blocking(self._pipe, False)

    def show(self, head: Array, quat: Array, q: Array, twin: Array) -> None:
        """Send a row: head (HEAD,), the base's quaternion (4,), positions of robot and twin (joints,)."""
        row = self._row
        row[:HEAD], row[HEAD : HEAD + 4] = head, quat
        row[HEAD + 4 : HEAD + 4 + len(q)], row[HEAD + 4 + len(q) :] = q, twin
        try:
            os.write(self._pipe, row.tobytes())  # below 4096 bytes a pipe takes all or nothing
        except OSError:
            return  # it is busy, or closed: the robot does not care

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(5.0)


class Scene:
    """Robot and twin in one model, posed from rows."""

    def __init__(self, twin: Twin):
        self.twin, self.model = twin, with_ghost(twin)
        self.data = mujoco.MjData(self.model)
        self._joints = [[self.model.joint(p + name).qposadr[0] for name in twin.joints] for p in ("", GHOST)]
        base, self._bases = base_joint(twin.model), list[int]()
        if base is not None:
            name = twin.model.joint(base).name
            self._bases = [self.model.joint(p + name).qposadr[0] for p in ("", GHOST)]
            self._home = twin.home[twin.model.jnt_qposadr[base] :][:7]
        n = len(twin.joints)
        self.pose(np.concatenate([np.zeros(HEAD), (1, 0, 0, 0), np.tile([twin.home[d.qpos] for d in twin.drives], 2)]))
        self.width = HEAD + 4 + 2 * n

    def pose(self, row: Array) -> None:
        """Take a row: both share the base's orientation, and stand where the home pose is; no sensor says more."""
        both = row[HEAD + 4 :].reshape(2, -1)
        for k, places in enumerate(self._joints):
            self.data.qpos[places] = both[k]
        for first in self._bases:
            self.data.qpos[first : first + 3] = self._home[:3]
            self.data.qpos[first + 3 : first + 7] = row[HEAD : HEAD + 4]
        mujoco.mj_forward(self.model, self.data)


def serve() -> None:
    """Show rows from standard input until it ends, as the words behind the program say."""
    model, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    scene = Scene(Twin.load(model))
    server, drawn = open_scene(scene.model, scene.data, port if host == LOCAL else 0)
    gate = None if host == LOCAL else Gate(host, port, server.get_port())
    where = f"http://{LOCAL}:{server.get_port()}" if gate is None else f"http://{host}:{gate.port}/?token={gate.token}"
    print(f"open {where}", file=sys.stderr, flush=True)
    said = server.gui.add_markdown("solid: robot, blue: twin")
    rows: deque[Array] = deque(maxlen=KEPT)
    plots = _plots(server)
    drew = 0.0
    while len(data := sys.stdin.buffer.read(8 * scene.width)) == 8 * scene.width:
        rows.append(np.frombuffer(data, "<f8"))
        scene.pose(rows[-1])
        drawn.update_from_mjdata(scene.data)
        if time.monotonic() - drew > 0.25:
            drew, table = time.monotonic(), np.array(rows)
            for k, plot in enumerate(plots):
                plot.data = (table[:, 0].copy(), table[:, 2 + k].copy())
            stopped = "" if rows[-1][1] == 0 else " **STOPPED**"
            said.content = f"solid: robot, blue: twin; {rows[-1][0]:.1f} s{stopped}"
    server.stop()


def _plots(server: Any) -> list[Any]:
    import viser.uplot as uplot

    start = (np.zeros(1), np.zeros(1))
    series = [(uplot.Series(label="t"), uplot.Series(label=name, stroke="#1f5fff", width=2)) for name in PLOTTED]
    return [
        server.gui.add_uplot(data=start, series=each, title=name, aspect=2.0)
        for name, each in zip(PLOTTED, series, strict=True)
    ]
