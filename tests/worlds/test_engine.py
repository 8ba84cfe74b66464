"""The engine seam: another engine takes the place of MuJoCo's batch, and nothing else notices."""

import mujoco
import numpy as np
import pytest

from gapless.twin import Twin, within_tolerance
from gapless.worlds import Worlds
from gapless.worlds.engine import BatchEngine


class Loop:
    """One MjData after the other, in Python."""

    def __init__(self, model: mujoco.MjModel, n: int, threads: int = 0):
        import copy

        self.model = model
        self._models = [copy.copy(model) for _ in range(n)]
        self._data = [mujoco.MjData(model) for _ in range(n)]
        self._state = {
            f: np.array([getattr(d, f) for d in self._data]) for f in ("qpos", "qvel", "qfrc_applied", "xfrc_applied")
        }

    def state(self, field):
        return self._state[field]

    def field(self, name):
        return np.array([getattr(m.opt if "." in name else m, name.rpartition(".")[2]) for m in self._models])

    def put(self, fields, ids):
        for row, i in enumerate(ids):
            for name, values in fields.items():
                getattr(self._models[i].opt if "." in name else self._models[i], name.rpartition(".")[2])[:] = values[row]
            mujoco.mj_setConst(self._models[i], mujoco.MjData(self._models[i]))

    def reset(self, ids):
        for i in ids:
            mujoco.mj_resetData(self._models[i], self._data[i])
            for field, values in self._state.items():
                values[i] = getattr(self._data[i], field)

    def roll(self, control, record):
        for i, (model, data) in enumerate(zip(self._models, self._data, strict=True)):
            for field, values in self._state.items():
                getattr(data, field)[:] = values[i]
            for step, u in enumerate(control[i]):
                data.ctrl[:] = u
                mujoco.mj_step(model, data)
                for field, out in record.items():
                    out[i, step] = getattr(data, field)
            for field, values in self._state.items():
                values[i] = getattr(data, field)
        return {}


def test_worlds_on_another_engine_move_and_read_the_same():
    twin = Twin.load("quadruped")
    both = [
        Worlds(twin, 3, within_tolerance(twin.space), np.random.default_rng(2), threads=1, engine=engine)
        for engine in (BatchEngine, Loop)
    ]
    for k in range(8):
        ours, other = (w.step(w.home_command + 0.1 * np.sin(k + np.arange(12))) for w in both)
        for signal in ours:
            np.testing.assert_array_equal(ours[signal], other[signal])
        if k == 4:
            for worlds in both:
                worlds.reset([1])
                worlds.push([0.3, 0, 0], [2])
    np.testing.assert_array_equal(both[0].qpos, both[1].qpos)


@pytest.fixture
def engine() -> BatchEngine:
    return BatchEngine(Twin.load("bench").model, 3, 1)


def test_state_is_live_and_fields_are_each_worlds_own(engine):
    engine.state("qvel")[1] = 0.7
    assert engine.state("qvel")[:, 0].tolist() == [0.0, 0.7, 0.0]
    shared = engine.field("dof_damping")
    assert shared.shape == (3, engine.model.nv)
    engine.put({"dof_damping": shared[:1] + 1.0}, np.array([2]))
    np.testing.assert_array_equal(engine.field("dof_damping") - shared, [[0], [0], [1]])
    engine.reset(np.array([1]))
    assert not engine.state("qvel").any()


def test_physics_that_breaks_is_told_in_words_once(engine):
    record = {"qpos": np.empty((3, 5, engine.model.nq))}
    control = np.zeros((3, 5, engine.model.nu))
    engine.state("qvel")[1] = 1e15
    assert engine.roll(control, record) == {1: "velocities became infinite or undefined"}
    engine.reset(np.array([1]))
    assert engine.roll(control, record) == {}
