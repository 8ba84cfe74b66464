"""What runs beside a run: steering by three hands, the watch, the view and the gate before it."""

import http.client
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

import gapless
from gapless.deploy.beside import beside, status
from gapless.deploy.emulated import Emulated, InProcess
from gapless.deploy.gate import COOKIE, Gate
from gapless.deploy.limits import limits_of
from gapless.deploy.runner import Runner
from gapless.deploy.steer import EVENT, Steer
from gapless.deploy.view import HEAD, Scene, View
from gapless.deploy.watch import Envelope, Watch, envelope_of
from gapless.policy import load_policy
from gapless.robots import load_robot
from gapless.twin import Twin
from gapless.worlds import StandInSpec

POLICY = Path(gapless.__file__).parent / "close/policies/quadruped_wide"
pytestmark = pytest.mark.xdist_group("deploy")


def a_runner(watch=None, inside=None):
    policy, model = load_policy(POLICY), load_robot("quadruped")
    robot = InProcess(inside or Emulated(StandInSpec("quadruped", seed=5)))
    return Runner(robot, model, policy, (0.0, 0.0, 0.0), limits_of(model, policy.contract), watch=watch)


def test_packets_steer_within_the_contracts_ranges_and_nonsense_does_not():
    runner = a_runner()
    steer, asked = Steer("udp:0"), runner.pilot.runtime.command
    steer.take(runner)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:

        def tell(*texts):
            for text in texts:
                line.sendto(text.encode(), ("127.0.0.1", steer.port))
            steer.poll()

        tell("[0.1, 0, 0]", "[0.3, 0, 0.2]")
        assert asked[0].tolist() == [0.3, 0.0, 0.2]  # none waits for its turn: the newest counts
        tell("[1e9, 0, 0]", "[0.1]", "[NaN, 0, 0]", "{", '"go"', "[[[[", "null", "")
        most = next(iter(runner.contract.commands.values()))[1]
        assert asked[0, 0] == most < 1e9 and steer.ignored == 7
        steer._heard = -1.0  # the sender has been silent
        steer.poll()
        assert not asked.any()
        tell(*["[0.1, 0, 0]"] * 100, '"stop"')
    assert runner._ended.is_set()
    steer.close()


def test_a_gamepads_file_and_keys_steer(tmp_path, monkeypatch):
    runner = a_runner()
    asked, spans = runner.pilot.runtime.command, list(runner.contract.commands.values())
    pad = tmp_path / "js0"
    os.mkfifo(pad)
    steer = Steer(str(pad))
    steer.take(runner)
    with pad.open("wb") as held:
        held.write(EVENT.pack(0, -32767, 2, 1) + EVENT.pack(1, 16384, 2, 3) + b"cut")
        held.flush()
        steer.poll()
    assert asked[0] == pytest.approx([spans[0][1], 0.0, spans[2][0] / 2], rel=1e-3)
    steer.close()
    ours, theirs = os.openpty()
    with open(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        runner = a_runner()
        steer, asked = Steer("keyboard"), runner.pilot.runtime.command
        steer.take(runner)
        with steer.typing():
            os.write(ours, b"wwd")
            steer.poll()
            step = 0.1 * (spans[0][1] - spans[0][0])
            assert asked[0, 0] == pytest.approx(2 * step) and asked[0, 1] < 0
            os.write(ours, b" x\x1b")
            steer.poll()
    os.close(ours)
    assert not asked.any() and runner._ended.is_set() and runner.safety.rung.name == "DAMP"


@pytest.fixture(scope="module")
def watched():
    policy = load_policy(POLICY)
    twin = Twin.load("quadruped", control_dt=policy.contract.timing.control_dt)
    return twin, envelope_of(policy, twin, np.zeros(3), np.random.default_rng(0))


def test_the_watch_is_calm_on_the_robot_it_knows_and_stops_one_that_is_another(watched):
    calm = Watch(*watched)
    assert a_runner(calm).run(2.0).reason == "" and 0.0 < calm.level < 1.0
    ends = {}
    for name, by in (("offset.imu_pitch", 0.2), ("gains.kp/*", "x0.3")):
        alarmed = Watch(*watched)
        out = a_runner(alarmed, Emulated(StandInSpec("quadruped", seed=5, change={name: by}))).run(1.5)
        ends[name] = (alarmed.warnings, out.reason[:21], out.first)
    assert ends == {"offset.imu_pitch": (1, "", "RUN"), "gains.kp/*": (1, "the robot left the en", "HOLD")}  # warned; stopped


def test_the_line_beside_a_run_says_gap_and_reason():
    runner = a_runner(Watch(Twin.load("quadruped", control_dt=0.02), Envelope(1e-6, 0.1, 0.1)))
    lines = []
    with beside(runner, lines.append, None, None):
        runner.run(3.0)
    assert "of the envelope: WARNING" in "".join(lines) + status(runner)
    assert "HOLD" in "".join(lines) + status(runner) or "DAMP" in status(runner)


class Inside(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"inside")

    def log_message(self, *words):
        pass


def test_the_gate_opens_for_the_token_only():
    page = HTTPServer(("127.0.0.1", 0), Inside)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    gate = Gate("127.0.0.1", 0, page.server_port)

    def ask(path="/", **headers):
        line = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=10)
        line.request("GET", path, headers={k.capitalize(): v for k, v in headers.items()})
        answer = line.getresponse()
        return answer.status, answer.headers.get("Set-Cookie", ""), answer.read()

    assert ask()[0] == ask("/?token=x")[0] == ask(cookie=f"{COOKIE}=x")[0] == ask(cookie="\x7f;=")[0] == 403
    status, cookie, _ = ask(f"/?token={gate.token}")
    assert status == 303 and "HttpOnly" in cookie
    assert ask(cookie=cookie.partition(";")[0])[::2] == (200, b"inside")
    page.shutdown()


def test_the_view_shows_robot_and_twin_and_never_makes_the_run_wait():
    pytest.importorskip("viser")
    scene = Scene(Twin.load("quadruped"))
    n, row = 12, np.zeros(scene.width)
    row[HEAD : HEAD + 4] = np.cos(0.1), np.sin(0.1), 0.0, 0.0
    row[HEAD + 4 : HEAD + 4 + n], row[HEAD + 4 + n :] = 0.1, 0.2
    scene.pose(row)
    assert sorted(set(np.round(scene.data.qpos[[*scene._joints[0], *scene._joints[1]]], 6))) == [0.1, 0.2]
    view = View("no such robot", n)  # its process ends at once, and nobody minds
    for _ in range(3000):
        view.show(row[:HEAD], row[HEAD : HEAD + 4], np.zeros(n), np.zeros(n))
    view.close()
