"""Training runs: the same curve from the same seed, going on bit by bit, a policy left behind whatever happens."""

import dataclasses
import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gapless.errors import BadInput
from gapless.learn import run as runs, trained
from gapless.learn.environment import Environment
from gapless.learn.learner import Diverged, Learner
from gapless.learn.networks import by_columns, load_networks
from gapless.learn.run import Run, load_run, read_checkpoint, train
from gapless.learn.settings import PPOSettings
from gapless.policy import load_policy
from gapless.robots import files_of
from gapless.twin import Twin, recipe_of, save_belief, within_tolerance
from tests.learn.upright import Upright

pytestmark = pytest.mark.xdist_group("training")  # two trainings at once are slower than one after the other

SMALL = PPOSettings(worlds=6, steps=8, iterations=4, every=2, hidden=(16, 16), epochs=2, minibatches=2)


@pytest.fixture(autouse=True)
def few_unseen_robots(monkeypatch):
    monkeypatch.setattr(runs, "UNSEEN", 4)
    monkeypatch.setattr("gapless.learn.trained.UNSEEN_SECONDS", 0.5)


def run_of(**changes):
    return Run("velocity", "quadruped", settings=dataclasses.replace(SMALL, **changes))


def curve(run, folder, **options):
    seen = []
    train(run, folder, lambda news: seen.append((news.progress.terms, news.progress.losses, news.unseen)), threads=1, **options)
    return seen


def environment(run):
    twin, task, belief = run.build()
    return Environment(twin, task, 6, belief, np.random.default_rng(0), 1)


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        if isinstance(a[name], torch.Tensor):
            assert torch.equal(a[name], b[name]), name


def test_a_resumed_run_equals_an_uninterrupted_one_bit_by_bit(tmp_path):
    whole = curve(run_of(), tmp_path / "whole")
    again = curve(run_of(), tmp_path / "again")
    assert whole == again  # the same seed, the same curve
    first = curve(run_of(), tmp_path / "parts", iterations=2)
    second = curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True)
    assert first + second == whole
    ends = [read_checkpoint(tmp_path / name / "checkpoint.pt") for name in ("whole", "parts")]
    for part in ("actor_state_dict", "critic_state_dict"):
        same(ends[0][part], ends[1][part])
    assert ends[0]["iteration"] == ends[1]["iteration"] == 4
    other = curve(dataclasses.replace(run_of(), seed=1), tmp_path / "other")
    assert other != whole


def test_a_resumed_run_with_a_memory_equals_an_uninterrupted_one(tmp_path):
    whole = curve(run_of(recurrent=4), tmp_path / "whole")
    first = curve(run_of(recurrent=4), tmp_path / "parts", iterations=2)
    assert first + curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True) == whole


def test_a_run_that_stopped_before_its_first_checkpoint_starts_as_it_did_then(tmp_path):
    def stop(news):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run_of(), tmp_path / "parts", stop, threads=1)
    assert not (tmp_path / "parts" / "checkpoint.pt").exists()
    assert curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True) == curve(run_of(), tmp_path / "whole")


def test_a_run_stops_only_where_a_checkpoint_is(tmp_path):
    with pytest.raises(BadInput, match="at a checkpoint, every 2 iterations, not after 3"):
        curve(run_of(), tmp_path, iterations=3)


def test_the_folder_holds_a_policy_that_runs_and_knows_its_robot(tmp_path):
    curve(run_of(), tmp_path)
    policy = load_policy(tmp_path)
    assert policy.contract.robot.name == "quadruped"
    assert [t.name for t in policy.contract.observation.terms][:3] == ["gyro", "gravity", "q"]
    assert policy(np.zeros((3, policy.contract.width))).shape == (3, 12)
    assert list((tmp_path / "tensorboard").iterdir())


def test_the_contract_names_the_models_file_and_the_delays_that_were_met(tmp_path):
    robot, scene = tmp_path / "robot.xml", tmp_path / "scene.xml"
    robot.write_text(Twin.load("quadruped").spec.to_xml())
    scene.write_text('<mujoco><include file="robot.xml"/></mujoco>')
    run = dataclasses.replace(run_of(), robot=str(robot))
    curve(run, tmp_path / "run", iterations=2)
    contract = load_policy(tmp_path / "run").contract
    assert contract.robot.model_sha256 == hashlib.sha256(robot.read_bytes()).hexdigest()
    low, high = contract.timing.delay_range
    assert 0.0 <= low < 0.004  # two delays of 0 to 20 ms, and jitter of up to 5 ms
    assert 0.04 < high <= 0.045
    assert files_of(scene) == [scene, robot]
    before = dataclasses.replace(run, robot=str(scene)).hashes()
    robot.write_text(robot.read_text() + "<!-- heavier -->")
    assert dataclasses.replace(run, robot=str(scene)).hashes() != before
    with pytest.raises(BadInput, match="the robot's file has changed since the training began"):
        curve(load_run(tmp_path / "run"), tmp_path / "run", resume=True)


def test_the_policy_in_the_folder_is_the_best_and_not_the_last(tmp_path, monkeypatch):
    scores = iter([2.0, 1.0])
    evaluate = runs.evaluate
    monkeypatch.setattr(runs, "evaluate", lambda *args: (next(scores), evaluate(*args)[1]))
    curve(run_of(), tmp_path)
    best, now = load_networks(tmp_path / "best.npz")[0]["actor"], read_checkpoint(tmp_path / "checkpoint.pt")
    assert not np.array_equal(best["mlp.0.weight"], now["actor_state_dict"]["mlp.0.weight"].numpy())
    assert read_checkpoint(tmp_path / "checkpoint.pt")["iteration"] == 4


def test_a_recurrent_policy_learns_and_is_exported_with_its_memory(tmp_path):
    curve(run_of(recurrent=8, iterations=2), tmp_path)
    policy = load_policy(tmp_path)
    assert policy.contract.recurrent is not None
    once = policy(np.ones((2, policy.contract.width)))
    assert not np.array_equal(once, policy(np.ones((2, policy.contract.width))))


def test_history_makes_the_observation_longer(tmp_path):
    curve(dataclasses.replace(run_of(iterations=2), history=3), tmp_path)
    joints = 3 * (3 + 3 + 36)
    assert load_policy(tmp_path).contract.width == joints + 3 + 2 + 3


def test_ctrl_c_leaves_a_usable_policy(tmp_path):
    def stop(news):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run_of(), tmp_path, stop, threads=1)
    assert load_policy(tmp_path).contract.width == 50


def test_a_run_that_was_stopped_between_checkpoints_ends_with_the_policy_of_one_that_was_not(tmp_path, monkeypatch):
    def stop(news):
        if news.progress.iteration == 3:
            raise KeyboardInterrupt

    scores, now = {2: 5.0, 3: 9.0, 4: 1.0}, []  # between the checkpoints it was best
    evaluate, judge = runs.evaluate, runs._Training.judge
    monkeypatch.setattr(runs._Training, "judge", lambda training: (now.append(training.learner.iteration), judge(training))[1])
    monkeypatch.setattr(runs, "evaluate", lambda policy, world: (scores[now[-1]], evaluate(policy, world)[1]))
    train(run_of(), tmp_path / "whole", threads=1)
    with pytest.raises(KeyboardInterrupt):
        train(run_of(), tmp_path / "stopped", stop, threads=1)
    train(run_of(), tmp_path / "stopped", resume=True, threads=1)
    golden = (np.load(tmp_path / name / "golden.npz")["action"] for name in ("whole", "stopped"))
    np.testing.assert_array_equal(*golden)


def test_ctrl_c_while_the_policy_is_written_leaves_a_usable_one(tmp_path, monkeypatch):
    save_policy, calls = trained.save_policy, []

    def interrupted(folder, *rest):
        calls.append(folder)
        save_policy(folder, *rest)
        if len(calls) == 1:
            (folder / "policy.onnx").unlink()  # it had got so far
            raise KeyboardInterrupt

    monkeypatch.setattr(trained, "save_policy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(run_of(), tmp_path, threads=1)
    assert load_policy(tmp_path).contract.width == 50


def test_a_training_that_diverges_says_so_and_keeps_the_best(tmp_path, monkeypatch):
    iterate = Learner.iterate

    def diverge(learner):
        if learner.iteration == 3:
            raise Diverged
        return iterate(learner)

    monkeypatch.setattr(Learner, "iterate", diverge)
    with pytest.raises(
        BadInput, match=r"diverged after iteration 3: .* keeps the best checkpoint .*iteration 2.* try a lower --rate"
    ):
        train(run_of(), tmp_path, threads=1)
    assert load_policy(tmp_path).contract.width == 50
    monkeypatch.setattr(Learner, "iterate", lambda learner: diverge(SimpleNamespace(iteration=3)))
    with pytest.raises(BadInput, match="diverged after iteration 0: .* has no checkpoint yet"):
        train(run_of(), tmp_path / "at once", threads=1)


def test_losses_that_are_not_finite_are_a_divergence(tmp_path):
    learner = Learner(lambda rng, hardness: environment(run_of()), SMALL, 0)
    with torch.no_grad():
        learner.alg.critic.mlp[0].weight[:] = torch.inf
    with pytest.raises(Diverged):
        learner.iterate()


def test_tuning_further_starts_from_the_policy_and_its_critic_by_the_names_of_columns(tmp_path):
    curve(run_of(), tmp_path / "first")
    networks, columns = load_networks(tmp_path / "first" / "best.npz")
    none = dataclasses.replace(run_of(), preset="none")  # another critic: it knows no parameters
    learner = Learner(lambda rng, hardness: environment(none), SMALL, 0)
    learner.start_from(networks, columns)
    np.testing.assert_array_equal(learner.alg.actor.mlp[0].weight.detach(), networks["actor"]["mlp.0.weight"])
    now = learner.environment.critic_columns
    assert len(now) == learner.environment.reset()["critic"].shape[1]
    both = [name for name in columns if name in now]
    assert set(now) - set(both)  # numbers that `wide` does not draw
    weights = learner.alg.critic.mlp[0].weight.detach().numpy(), networks["critic"]["mlp.0.weight"]
    after, before = (w[:, [of.index(name) for name in both]] for w, of in zip(weights, (now, columns), strict=True))
    np.testing.assert_array_equal(after, before)
    wider = by_columns({"mlp.0.weight": np.ones((2, 1)), "obs_normalizer._var": np.full((1, 1), 9.0)}, ("a",), ("b", "a"))
    np.testing.assert_array_equal(wider["mlp.0.weight"], [[0, 1], [0, 1]])  # a column that it never saw changes nothing
    np.testing.assert_array_equal(wider["obs_normalizer._var"], [[1, 9]])
    assert learner.environment.hardness == 1.0  # it withstood pushes already


def test_networks_from_elsewhere_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "best.npz"
    for content in ({"columns": np.array(["a"])}, {"columns": np.array(["a"]), "actor/w": np.array([np.nan])}):
        np.savez(path, **content)
        with pytest.raises(BadInput, match="actor or critic are missing, or have numbers that are not finite"):
            load_networks(path)
    np.savez(path, columns=np.array([{}], dtype=object))
    with pytest.raises(BadInput, match="not networks of a training"):
        load_networks(path)
    with pytest.raises(BadInput, match="its critic sees 3 columns and names 1"):
        by_columns({"mlp.0.weight": np.ones((2, 3))}, ("a",), ("a",))


def test_a_resumed_tuning_equals_an_uninterrupted_one(tmp_path):
    curve(run_of(), tmp_path / "first")
    none = dataclasses.replace(run_of(), preset="none")
    whole = curve(none, tmp_path / "whole", start=tmp_path / "first")
    parts = curve(none, tmp_path / "parts", start=tmp_path / "first", iterations=2)
    assert parts + curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True) == whole
    ends = [read_checkpoint(tmp_path / name / "checkpoint.pt")["actor_state_dict"] for name in ("whole", "parts")]
    same(*ends)

    def stop(news):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # before the first checkpoint but the one it starts from
        train(none, tmp_path / "early", stop, start=tmp_path / "first", threads=1)
    assert curve(load_run(tmp_path / "early"), tmp_path / "early", resume=True) == whole


def test_a_tuning_that_only_gets_worse_keeps_what_it_started_from(tmp_path, monkeypatch):
    curve(run_of(), tmp_path / "first")
    evaluate, scores = runs.evaluate, iter(range(0, -9, -1))
    monkeypatch.setattr(runs, "evaluate", lambda *given: (next(scores), evaluate(*given)[1]))
    curve(run_of(), tmp_path / "second", start=tmp_path / "first")
    frames = environment(run_of()).reset()["policy"]
    np.testing.assert_array_equal(load_policy(tmp_path / "second")(frames), load_policy(tmp_path / "first")(frames))


def test_a_policy_that_means_something_else_or_is_of_another_version_is_not_tuned_further(tmp_path):
    curve(run_of(iterations=2), tmp_path / "first")
    model = Twin.load("quadruped").spec.to_xml()
    (tmp_path / "turned.xml").write_text(model.replace("FL_", "XX_").replace("FR_", "FL_").replace("XX_", "FR_"))
    turned = dataclasses.replace(run_of(iterations=2), robot=str(tmp_path / "turned.xml"))
    with pytest.raises(BadInput, match="its joints differ from those of this task and robot"):
        curve(turned, tmp_path / "second", start=tmp_path / "first")
    path = tmp_path / "first" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "0.0.1"}))
    with pytest.raises(BadInput, match="written by gapless 0.0.1"):
        curve(run_of(iterations=2), tmp_path / "second", start=tmp_path / "first")


def test_bad_folders_are_refused_in_one_sentence(tmp_path):
    folder = tmp_path / "run"
    curve(run_of(iterations=2), folder)
    table = json.loads((folder / "run.json").read_text())
    wrong = (
        {"every": 0}, {"iterations": "many"}, {"hidden": ["a"]}, {"hidden": []}, {"hidden": [4] * 99}, {"gamma": 2.0},
        {"rate": None}, {"mirror": "x"}, {"worlds": 100_000, "steps": 10_000}, {"minibatches": 1000},
    )  # fmt: skip
    for change, sentence in (
        ({"version": "0.0.1"}, "written by gapless 0.0.1"),
        ({"format": "gapless run 9"}, "not a training run of this version"),
        ({"settings": {"worlds": 3}}, "settings lack steps"),
        ({"settings": 3}, "settings: a table was expected"),
        *(({"settings": table["settings"] | change}, f"damaged: .*{next(iter(change))}") for change in wrong),
        ({"colour": "red"}, "colour"),
        ({"robot": 5}, "robot: a text was expected"),
        ({"seed": -1}, "seed: a whole number"),
        ({"residual": "no"}, "residual: true or false"),
        ({"sha256": []}, "sha256: a table was expected"),
        ({"stated": {"kp": "stiff"}}, "kp: a finite number"),
    ):
        (folder / "run.json").write_text(json.dumps(table | change))
        with pytest.raises(BadInput, match=sentence):
            load_run(folder)
    for text in ("{", "[" * 200_000):
        (folder / "run.json").write_text(text)
        with pytest.raises(BadInput, match="not valid JSON"):
            load_run(folder)
    with pytest.raises(BadInput, match="there is no such file"):
        load_run(tmp_path)
    (folder / "checkpoint.pt").write_bytes(b"PK\x03\x04 no checkpoint")
    with pytest.raises(BadInput, match="not a checkpoint"):
        curve(run_of(), folder, resume=True)
    torch.save({"actor_state_dict": 1}, folder / "checkpoint.pt")
    with pytest.raises(BadInput, match="not a checkpoint of a training run"):
        curve(run_of(), folder, resume=True)


def test_a_task_of_ones_own_takes_the_place_of_a_named_one(tmp_path):
    seen = []
    run = dataclasses.replace(run_of(iterations=2), task="upright")
    train(run, tmp_path, seen.append, threads=1, task=Upright())
    assert set(seen[-1].progress.terms) == {"upright", "falls"}
    assert seen[-1].progress.metrics == {}  # it offers none
    assert load_policy(tmp_path).contract.width == 42
    with pytest.raises(BadInput, match="unknown task 'upright'"):
        train(run, tmp_path / "other", threads=1)


def test_errors_in_tracking_are_averaged_over_an_iteration_and_logged(tmp_path, monkeypatch):
    given, seen = iter(range(1000)), []

    def metrics(task, scene):
        return {"velocity_error": np.full(scene.n, float(next(given)))}

    learner = Learner(lambda rng, hardness: environment(run_of()), SMALL, 0)
    monkeypatch.setattr(type(learner.environment.task), "metrics", metrics)
    monkeypatch.setattr(type(learner.environment.task), "reward", lambda task, scene: {"none": np.zeros(scene.n)})
    assert learner.iterate().metrics == {"velocity_error": pytest.approx(np.mean(range(8)))}
    assert learner.iterate().metrics == {"velocity_error": pytest.approx(np.mean(range(8, 16)))}
    monkeypatch.undo()
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(run_of(iterations=2), tmp_path, seen.append, threads=1)
    logged = events.EventAccumulator(str(tmp_path / "tensorboard"))
    logged.Reload()
    for name in ("velocity_error", "yaw_error"):
        written = [s.value for s in logged.Scalars(f"metric/{name}")]
        np.testing.assert_allclose(written, [n.progress.metrics[name] for n in seen], rtol=1e-6)


def test_a_residual_policy_carries_its_gait_and_goes_on_as_one(tmp_path):
    residual = dataclasses.replace(run_of(), residual=True)
    whole = curve(residual, tmp_path / "whole")
    assert load_policy(tmp_path / "whole").contract.action.reference.frequency == 2.75
    first = curve(residual, tmp_path / "parts", iterations=2)
    assert first + curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True) == whole


def test_a_policy_of_another_robot_cannot_be_tuned_further(tmp_path):
    curve(run_of(iterations=2), tmp_path / "first")
    bench = Run("swing", "bench", settings=dataclasses.replace(SMALL, iterations=2))
    with pytest.raises(BadInput, match="its joints differ"):
        curve(bench, tmp_path / "second", start=tmp_path / "first")
    residual = dataclasses.replace(run_of(iterations=2), residual=True)
    with pytest.raises(BadInput, match="adds to a gait; both need --residual, or neither"):
        curve(residual, tmp_path / "third", start=tmp_path / "first")
    with pytest.raises(BadInput, match="its networks are of another task, robot or size"):
        curve(run_of(iterations=2, hidden=(8, 8)), tmp_path / "fourth", start=tmp_path / "first")


def test_worlds_widen_over_the_first_half_where_that_is_asked_for(tmp_path, monkeypatch):
    widths = []

    class Watched(runs.Environment):
        def __init__(self, twin, task, n, belief, *rest):
            super().__init__(twin, task, n, belief, *rest)
            widths.append((n, float(np.ptp([belief.low[0], belief.high[0]]))))

    monkeypatch.setattr(runs, "Environment", Watched)
    curve(run_of(widen=True, every=1), tmp_path)
    training = [w for n, w in widths if n == 6]
    unseen = {w for n, w in widths if n == 4}
    assert len(unseen) == 1
    assert training[:4] == sorted(training[:4])
    assert training[0] == pytest.approx(0.1 * training[-1])
    assert {training[-1]} == unseen  # they are judged in the whole of it from the start


def test_commands_grow_over_the_first_half_where_that_is_asked_for(tmp_path, monkeypatch):
    seen = []

    class Watched(runs.Environment):
        def _ask(self, ids):
            super()._ask(ids)
            seen.append((self.n, float(self.scene.command[ids, 0].max())))

    monkeypatch.setattr(runs, "Environment", Watched)
    monkeypatch.setattr(runs, "UNSEEN", 300)
    curve(run_of(slow=0.2, every=1, worlds=200, iterations=2), tmp_path)
    training, unseen = ([v for n, v in seen if n == size] for size in (200, 300))
    assert 0.9 * 0.28 * 1.2 < training[0] <= 0.28 * 1.2  # a fifth, and a tenth of the rest; the task asks for up to 1.2 m/s
    assert max(training[1:]) > 0.95 * 1.2
    assert min(unseen) > 0.95 * 1.2  # they are judged in the whole of it from the start


def test_a_run_keeps_the_belief_it_was_given(tmp_path):
    twin = Twin.load("quadruped")
    belief = within_tolerance(twin.space.select("latency.*"))
    save_belief(belief, tmp_path / "known.json", recipe_of(twin))
    run = dataclasses.replace(run_of(), preset="narrow", belief=str(tmp_path / "known.json"))
    whole = curve(run, tmp_path / "whole")
    curve(run, tmp_path / "parts", iterations=2)
    (tmp_path / "known.json").unlink()
    assert curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True) == whole[2:]
    (tmp_path / "parts" / "belief.json").write_text((tmp_path / "parts" / "belief.json").read_text().replace("0.0", "0.00", 1))
    with pytest.raises(BadInput, match="the belief's file has changed"):
        curve(load_run(tmp_path / "parts"), tmp_path / "parts", resume=True)
