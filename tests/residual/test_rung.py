"""The rung "+ learned residual": from logs of a robot with hysteresis to a folder that other commands load."""

import dataclasses
import json
from pathlib import Path

import mujoco
import numpy as np
import onnxruntime
import pytest

from gapless.cli import main
from gapless.errors import BadInput
from gapless.logs import Log, write
from gapless.residual import load_nets, save_nets
from gapless.twin import Net, Residual, Twin, learned, load_recipe
from gapless.worlds import StandIn, StandInSpec, build_standin, plan_motion, record, replay

pytestmark = pytest.mark.xdist_group("rung")  # one worker makes the fixture, once

SPEC = StandInSpec("bench", seed=3, add={"hysteresis": {"windup": 0.05}}, change={"hysteresis.torque/*": 0.15})


def moved(seed: int, seconds: float) -> Log:
    return record(StandIn(SPEC), plan_motion("rich", build_standin(SPEC), seconds, np.random.default_rng(seed)))


def net(joint: str = "joint", step: float = 0.002, drive: str = "q", members: int = 1) -> Net:
    rng = np.random.default_rng(0)
    sides = [tuple([v] * learned.COUNT) for v in (0.1, 2.0, -3.0, 3.0)]
    weights = tuple(tuple(rng.standard_normal(learned.weights(4)).tolist()) for _ in range(members))
    return Net(joint, drive, step, 0.3, 2.0, *sides, weights)


def own(twin: Twin, members: int = 1) -> Net:
    return net(twin.joints[0], twin.model.opt.timestep, members=members)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    write(moved(1, 12.0), folder / "log.npz")
    main(["fit", "bench", str(folder / "log.npz"), "--residual", "force", "--out", str(folder / "out"), "--json"])
    return folder / "out"


def test_a_fit_keeps_its_networks_as_plain_files_and_says_how_good_they_are(fitted: Path) -> None:
    told = json.loads((fitted / "residual/residual.json").read_text())
    assert told["kept"] and "deg on motion that it has not seen" in told["verdict"]
    assert json.loads((fitted / "fit.json").read_text())["ladder"][-1]["name"] == "+ learned residual"
    nets = load_nets(fitted / "residual/residual.npz")
    assert [n.joint for n in nets] == list(Twin.load("bench").joints) and len(nets[0].members) == 3
    assert (fitted / "residual/report.html").stat().st_size > 1000


def test_the_saved_twin_has_the_learned_torque_and_says_what_plain_mujoco_lacks(fitted: Path) -> None:
    assert "A plain MuJoCo lacks it" in (fitted / "twin.xml").read_text()
    test = moved(2, 6.0)
    twin = Twin.load(fitted / "twin.xml")
    assert learned.marked(twin.model)
    numeric = [n for n in twin.spec.numerics if n.name.startswith(learned.PREFIX)]
    with_it = replay(twin, test, twin.space.nominal).error("q")
    for n in numeric:
        n.data = [next(iter(n.data)), 0.0, *list(n.data)[2:]]  # a bound of zero
    silent = Twin.load(_written(twin, fitted.parent / "silent.xml"))
    without = replay(silent, test, silent.space.nominal).error("q")
    assert np.abs(with_it - without).max() > 1e-5


def test_the_belief_remakes_the_twin_with_its_networks_from_the_robots_own_model(fitted: Path) -> None:
    made, saved = load_recipe("bench", fitted / "belief.json"), Twin.load(fitted / "twin.xml")
    assert made.model.opt.timestep == saved.model.opt.timestep
    assert learned.marked(made.model) and np.array_equal(*(networks(t.model) for t in (made, saved)))


def networks(model: mujoco.MjModel) -> np.ndarray:
    """The numbers of all networks of a model; a saved one has the gains that logs state besides."""
    return np.concatenate([model.numeric(i).data for i in range(model.nnumeric) if learned.PREFIX in model.numeric(i).name])


def _written(twin: Twin, path: Path) -> Path:
    path.write_text(twin.spec.to_xml())
    return path


def test_networks_survive_their_file_and_onnx_gives_the_same_torque(tmp_path: Path) -> None:
    made = net(members=2)
    save_nets([made], tmp_path)
    assert load_nets(tmp_path / "residual.npz") == (made,)
    values = np.random.default_rng(1).standard_normal((5, learned.COUNT))
    session = onnxruntime.InferenceSession(tmp_path / "joint.onnx")
    (torque,) = session.run(None, {"inputs": values.astype(np.float32)})
    sine, cosine = (learned.INPUTS.index(n) for n in ("sine", "cosine"))
    for row, given in zip(values, torque, strict=True):
        angle = row[5]
        scaled = row.copy()
        scaled[2] = row[1] / (abs(row[1]) + learned.CREEP)
        scaled[sine], scaled[cosine] = np.sin(2.0 * angle), np.cos(2.0 * angle)
        (exact,) = session.run(None, {"inputs": scaled[None].astype(np.float32)})
        engine = learned.learned_torque(made.numbers[0], row[0], row[1], row[3], row[4], angle, row[6], row[7], row[8])
        assert exact[0] == pytest.approx(engine, abs=1e-5)
        assert abs(given) <= made.bound


def test_a_residual_of_another_robot_step_or_drive_is_refused() -> None:
    twin = Twin.load("bench")
    good = own(twin)
    for wrong, says in (
        (dataclasses.replace(good, joint="elbow"), "another robot"),
        (dataclasses.replace(good, timestep=0.5), "time step"),
        (dataclasses.replace(good, drive="tau"), "another law"),
    ):
        with pytest.raises(BadInput, match=says):
            twin.plus(Residual((wrong,)))
    with pytest.raises(BadInput, match="two networks are for the same joint"):
        twin.plus(Residual((good, good)))
    with pytest.raises(BadInput, match="inputs"):
        dataclasses.replace(good, centre=good.centre[:3])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('size="111" data="4 ', 'size="111" data="4000 ', "not as it was written"),  # hidden units
        ('user="2 0.4142135623"', 'user="99 0.4142135623"', "not as it was written"),  # which numeric
        ('timestep="0.005"', 'timestep="0.001"', "trained at a time step of 0.005 s"),
    ],
)
def test_a_saved_twin_whose_networks_were_changed_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    twin = Twin.load("bench")
    twin = twin.plus(Residual((own(twin),)))
    twin.save(tmp_path / "twin.xml", twin.space.nominal)
    text = (tmp_path / "twin.xml").read_text()
    assert learned.marked(Twin.load(tmp_path / "twin.xml").model) and text.count(old) == 1
    (tmp_path / "changed.xml").write_text(text.replace(old, new))
    with pytest.raises(BadInput, match=says):
        Twin.load(tmp_path / "changed.xml")


def test_files_that_are_no_networks_and_logs_that_are_too_short_get_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "residual.npz").write_bytes(b"no archive")
    with pytest.raises(BadInput, match="not a file of learned torque"):
        load_nets(tmp_path / "residual.npz")
    with pytest.raises(BadInput, match="no such file"):
        load_nets(tmp_path / "none.npz")
    save_nets([net(), net()], tmp_path)
    for joints in ([], ["joint", "joint"]):
        with np.load(tmp_path / "residual.npz") as whole:
            np.savez(tmp_path / "other.npz", **{**whole, "joints": np.array(joints)})
        with pytest.raises(BadInput, match="no joint, or one twice"):
            load_nets(tmp_path / "other.npz")
    write(moved(1, 5.0), tmp_path / "short.npz")
    with pytest.raises(SystemExit) as end:
        main(["fit", "bench", str(tmp_path / "short.npz"), "--residual", "force", "--out", str(tmp_path / "out")])
    said = " ".join(capsys.readouterr().err.split())
    assert end.value.code == 2 and "needs 8 s of logs" in said
    assert "held-out" not in said and not (tmp_path / "out/progress.json").exists()  # before anything was fitted


def test_each_world_of_an_ensemble_has_its_own_member() -> None:
    twin = Twin.load("bench")
    twin = twin.plus(Residual((own(twin, members=3),)))
    values = np.tile(twin.space.nominal, (3, 1))
    values[:, twin.space.names.index("residual.member")] = [0.0, 1.0, 2.0]
    errors = replay(twin, moved(1, 2.0), values).error("q")
    assert len({float(np.abs(e).sum()) for e in errors}) == 3
