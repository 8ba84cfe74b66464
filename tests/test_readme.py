"""The README's Python example runs as it stands there, for a model and a log of a user's own."""

import re
from pathlib import Path

import mujoco
import numpy as np

import gapless
from gapless.logs import write
from gapless.worlds import StandIn, StandInSpec as Spec, build_standin, plan_motion, record

EXAMPLE = re.search(r"```python\n(.*?)```", (Path(__file__).parents[1] / "README.md").read_text(), re.DOTALL)[1]
MODEL = Path(gapless.__file__).parent / "robots/models/bench.xml"


def test_ten_lines_measure_fit_and_save_for_a_users_own_robot(tmp_path, monkeypatch, capsys):
    assert len(EXAMPLE.strip().splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    Path("my_robot.xml").write_text(MODEL.read_text())
    spec = Spec("bench", tolerance=0, change={"gains.kp/*": "x0.7"}, sensors={"noise_q": 0.0005})
    stand_in = StandIn(spec)
    write(record(stand_in, plan_motion("rich", build_standin(spec), 8.0, np.random.default_rng(0))), "motion.npz")
    exec(compile(EXAMPLE, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "Because of gains.kp" in printed
    assert "Held-out error fell" in printed
    assert {p.name for p in Path("fitted").iterdir()} == {"twin.xml", "belief.json", "fit.json", "report.html"}
    assert mujoco.MjModel.from_xml_path("fitted/twin.xml").nu == 1
    assert gapless.Fit.load("fitted").origin.model == "my_robot.xml"
