"""The stepping loop: forces computed between steps act as the engine's own would, in every way that worlds are run."""

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

from gapless.logs import Log
from gapless.twin import Bound, Gains, Latency, Mechanism, Parameter, Point, StepState, Twin, within_tolerance
from gapless.worlds import Worlds, replay
from tests.twin.models import INERTIA, twin_of, wheel

STIFFNESS, TIMESTEP = 3.0, 0.001


@dataclass(frozen=True)
class Spring(Mechanism):
    """A spring on the first joint, computed while stepping."""

    def bind(self, model: mujoco.MjModel) -> Bound:
        def force(state: StepState, values) -> np.ndarray:
            assert state.control.shape == (len(state.qpos), model.nu)
            out = np.zeros(state.qvel.shape)
            out[:, 0] = -values["spring.stiffness"][:, 0] * state.qpos[:, 0]
            return out

        stiffness = Parameter("spring.stiffness", STIFFNESS, 0.0, 100.0, 0.1, 1.0)
        return Bound([stiffness], lambda fields, values: None, force)


def swing(twin: Twin, values: np.ndarray | None = None, threads: int = 1) -> tuple[np.ndarray, Worlds]:
    """Angles of two worlds that start 0.5 and 1 rad off, at each of 200 periods."""
    belief = None if values is None else Point(twin.space, values)
    worlds = Worlds(twin, 2, belief, threads=threads)
    worlds.reset(qpos=np.array([[0.5], [1.0]]))
    out = []
    for _ in range(200):
        worlds.step(np.zeros(1))
        out.append(worlds.qpos[:, 0].copy())
    return np.array(out), worlds


def test_a_spring_by_force_is_the_engines_own_spring():
    engine, _ = swing(twin_of(wheel(joint=f'stiffness="{STIFFNESS}"', timestep=TIMESTEP)))
    force, worlds = swing(twin_of(wheel(timestep=TIMESTEP), Spring()))
    np.testing.assert_allclose(force, engine, atol=1e-12)
    time = np.arange(1, 201) * 4 * TIMESTEP
    np.testing.assert_allclose(force[:, 1], np.cos(np.sqrt(STIFFNESS / INERTIA) * time), atol=0.02)
    assert not worlds.state("qfrc_applied").any()


def test_each_world_has_the_force_of_its_own_parameters():
    twin = twin_of(wheel(timestep=TIMESTEP), Spring())
    worlds = Worlds(twin, 2)
    worlds.write([[STIFFNESS], [0.0]])
    worlds.reset(qpos=np.array([0.5]), redraw=False)
    for _ in range(50):
        worlds.step(np.zeros(1))
    assert worlds.qpos[0, 0] < 0.4
    assert worlds.qpos[1, 0] == 0.5


def test_a_force_adds_to_what_is_applied_from_outside():
    twin = twin_of(wheel(timestep=TIMESTEP), Spring())
    worlds = Worlds(twin, 1)
    worlds.state("qfrc_applied")[:] = 1.5
    for _ in range(1000):
        worlds.step(np.zeros(1))
        worlds.qvel[:] *= 0.9  # it settles
    assert worlds.qpos[0, 0] == pytest.approx(1.5 / STIFFNESS, rel=0.01)
    assert (worlds.state("qfrc_applied") == 1.5).all()


def test_a_force_gives_the_same_bits_at_any_number_of_threads():
    twin = Twin.load("quadruped", add=[Spring()])
    seen = set()
    for threads in (1, 2):
        worlds = Worlds(twin, 16, within_tolerance(twin.space), np.random.default_rng(1), threads=threads)
        for _ in range(10):
            worlds.step(worlds.home_command)
        seen.add(worlds.qpos.tobytes())
    assert len(seen) == 1


def test_a_replay_has_the_force_too():
    servo = '<position name="axle" joint="axle" kp="2" kv="0.1"/>'
    n, time = 400, np.arange(400) * 0.004
    log = Log.from_arrays(("axle",), time, {"q": np.full((n, 1), 0.5), "dq": np.zeros((n, 1)), "q_cmd": np.ones((n, 1))})
    engine = replay(twin_of(wheel(servo, f'stiffness="{STIFFNESS}"', TIMESTEP), Gains(), Latency()), log)
    force = replay(twin_of(wheel(servo, timestep=TIMESTEP), Gains(), Latency(), Spring()), log)
    for signal in ("q", "dq"):
        np.testing.assert_allclose(force.replayed[signal], engine.replayed[signal], atol=1e-11)


def test_a_world_that_breaks_under_a_force_is_reported_with_its_time():
    twin = twin_of(wheel(timestep=TIMESTEP), Spring())
    worlds = Worlds(twin, 2)
    worlds.step(np.zeros(1))
    worlds.qvel[1] = 1e15
    worlds.step(np.zeros(1))
    assert [(f.world, round(f.time, 6)) for f in worlds.failures] == [(1, 4 * TIMESTEP)]
