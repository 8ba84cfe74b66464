"""Delta action: a shift of commands in the worlds that makes the model move as a softer, later robot."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from gapless.cli import main
from gapless.errors import BadInput
from gapless.learn import build_contract, plan_run
from gapless.logs import Log, write
from gapless.residual import learn_delta, load_nets
from gapless.residual.files import DELTA
from gapless.twin import Net, Point, Residual, Twin, learned, load_belief, load_recipe
from gapless.worlds import StandIn, StandInSpec, Worlds, build_standin, plan_motion, record, replay

OTHER = StandInSpec("bench", 3, tolerance=0.0, change={"gains.kp/*": "x0.7", "latency.action": "+0.015"})


def moved(spec: StandInSpec, seed: int, seconds: float) -> Log:
    return record(StandIn(spec), plan_motion("rich", build_standin(spec), seconds, np.random.default_rng(seed)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("delta")
    write(moved(OTHER, 1, 10.0), made / "log.npz")
    main(["delta", "bench", str(made / "log.npz"), "--out", str(made / "out"), "--json"])
    return made / "out"


def test_it_predicts_motion_that_it_has_not_seen_and_the_twin_is_remade_from_its_folder(folder: Path) -> None:
    test, plain = moved(OTHER, 2, 6.0), Twin.load("bench")
    twin, belief = load_recipe("bench", folder / "belief.json"), load_belief(folder / "belief.json")
    before = replay(plain, test).rmse("q").mean()
    after = replay(twin, test, belief.mean()[None], space=belief.space).rmse("q").mean()
    assert after < 0.6 * before
    told = json.loads((folder / "delta.json").read_text())
    assert told["heldout_after"] < 0.75 * told["heldout_before"]  # from half of the log
    (net,) = load_nets(folder / DELTA)
    assert all(0 < j["size"] < net.bound for j in told["joints"].values())
    session = onnxruntime.InferenceSession(folder / f"{net.joint}.onnx")
    (shift,) = session.run(None, {"inputs": 10 * np.ones((3, learned.COUNT), dtype=np.float32)})
    assert np.abs(shift).max() <= net.bound + 1e-6


def test_a_training_has_it_in_every_world_and_the_policys_contract_does_not_know_of_it(folder: Path) -> None:
    runs = [plan_run("swing", "bench", belief, "none") for belief in (None, folder / "belief.json")]
    (plain, task, _), (twin, _, belief) = (run.build() for run in runs)
    assert learned.marked(twin.model) and not learned.marked(plain.model)
    assert build_contract(twin, task) == build_contract(plain, task)
    with_it = Worlds(twin, 2, belief, np.random.default_rng(0), signals=("q",))
    without = Worlds(plain, 2, None, np.random.default_rng(0), signals=("q",))
    told = with_it.home_command + 0.3
    ends = [[w.step(told)["q"] for _ in range(10)][-1] for w in (with_it, without)]
    assert np.array_equal(*ends[0]) and np.abs(ends[0] - ends[1]).min() > 1e-4


def constant(twin: Twin, shift: float) -> Net:
    """A network that always gives the same, whatever it sees."""
    d, weights = twin.drives[0], np.zeros(learned.weights(1))
    weights[-1] = shift / (1 - abs(shift))  # the output is bounded to 1
    sides = [tuple([v] * learned.COUNT) for v in (0.0, 1.0, -3.0, 3.0)]
    return Net(d.name, d.signal, twin.model.opt.timestep, 1.0, 1.0, *sides, (tuple(weights.tolist()),))


@pytest.mark.parametrize("shift", [0.05, -0.05, 0.95])  # the last one asks for more than the drive can give
def test_a_shift_of_the_target_is_the_same_as_another_command(shift: float) -> None:
    plain = Twin.load("bench")
    shifted = plain.plus(Residual((constant(plain, shift),), target=True))
    ends = []
    for twin, command in ((plain, shift), (shifted, 0.0)):
        worlds = Worlds(twin, 1, Point(twin.space, twin.space.nominal), signals=("q",))
        worlds.reset(command=worlds.home_command + command)
        ends.append([worlds.step(worlds.home_command + command)["q"][0, 0] for _ in range(20)])
    assert abs(ends[0][-1] - plain.home[plain.drives[0].qpos]) > 0.01  # it has moved
    assert ends[0] == pytest.approx(ends[1], abs=2e-3 * abs(shift))


def test_nothing_is_added_where_there_is_no_gap_and_short_logs_are_refused() -> None:
    same = StandInSpec("bench", 3, tolerance=0.0, sensors={"noise_q": 0.0003})
    learnt = learn_delta(Twin.load("bench"), [moved(same, 1, 10.0)])
    assert max((j.size for j in learnt.joints.values() if j.kept), default=0.0) < 0.02
    with pytest.raises(BadInput, match="8 s of logs"):
        learn_delta(Twin.load("bench"), [moved(OTHER, 1, 5.0)])
