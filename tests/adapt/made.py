"""A small teacher to test with."""

from pathlib import Path

from gapless.learn import Run, plan_run


def run(preset: str | None = None, **more) -> Run:
    settings = {"iterations": 6, "worlds": 8, "steps": 12}
    return plan_run("swing", "pendulum", None, preset, settings, **more)


def few(monkeypatch):
    """Judge on few robots for a moment."""
    for name in ("gapless.learn.run.UNSEEN", "gapless.adapt.distil.UNSEEN", "gapless.adapt.residual.UNSEEN"):
        monkeypatch.setattr(name, 4)
    for name, value in (("lots.UNSEEN", 4), ("meta.ROBOTS", 2), ("meta.EACH", 2), ("es_maml.PAIRS", 2), ("es_maml.BATCH", 2)):
        monkeypatch.setattr(f"gapless.adapt.{name}", value)
    for name, value in (("UPDATES", 20), ("ROBOTS", 4), ("TUNING", 20)):
        monkeypatch.setattr(f"gapless.adapt.few_shot.{name}", value)
    monkeypatch.setattr("gapless.learn.trained.UNSEEN_SECONDS", 1.5)
    monkeypatch.setattr("gapless.adapt.distil.BATCH", 64)


SPEC = """robot = "pendulum"
seed = 3
tolerance = 0
[change]
"latency.action" = 0.02
"""


def standin(folder: Path) -> Path:
    (folder / "secret.toml").write_text(SPEC)
    return folder / "secret.toml"
