"""A clip shows the course."""

import contextlib

import numpy as np

from gapless.learn import clip
from gapless.learn.clip import film_course
from gapless.learn.tasks import task_of
from gapless.twin import Twin


def test_a_clip_shows_every_command_alone_and_then_none_each_from_its_start(tmp_path, monkeypatch):
    twin, drawn, asked, kept = Twin.load("quadruped"), [], [], []
    task, run = task_of("velocity", twin), clip.course.run

    def watched(*args, watch, **options):
        result = run(*args, watch=lambda e: (kept.append(e.worlds.qpos.copy()), watch(e)), **options)
        asked.append(result.command)
        return result

    def picture(data):
        drawn.append(data.qpos.copy())
        return np.zeros((3, 4, 3), np.uint8)

    monkeypatch.setattr(clip.course, "run", watched)
    monkeypatch.setattr(clip, "studio", lambda *_: contextlib.nullcontext(picture))
    monkeypatch.setattr(clip, "SECONDS", 1.6)
    rng = np.random.default_rng(0)
    film_course(tmp_path / "clip.png", twin, task, lambda o: 0.5 * rng.standard_normal((len(o), 12)), None, rng)
    assert len(drawn) == 4 * 5  # four runs of 0.4 s at 12.5 pictures a second
    expected = [[1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.8], [0.0, 0.0, 0.0]]
    for shot, command in zip(np.reshape(drawn, (4, 5, -1)), expected, strict=True):
        of = int(np.flatnonzero((asked[0] == command).all(axis=1))[0])
        np.testing.assert_array_equal(shot, [qpos[of] for qpos in kept[:20:4]])
    assert (tmp_path / "clip.png").stat().st_size > 0
