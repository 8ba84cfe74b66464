"""The rung "+ learned residual" of a fit: a network per joint on top of the fitted physics, kept only where it truly helps.

    found = identify.fit(twin, logs)
    found, learnt = learn(found, logs)

Joints whose held-out error does not fall in the full model get no network. A floating base gets a pull besides, where that
helps (`base.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from gapless.errors import BadInput
from gapless.identify import SCORE_SECONDS, Fit, Rung, Scorer, by_block, gain_of, scores
from gapless.logs import Log
from gapless.measure import Trace, admit, split_logs
from gapless.residual.base import carries, pulled
from gapless.residual.networks import LEAST, Physics, Tick, noise, setting_of, trained, unsuitable, worth_it
from gapless.residual.result import Learnt, judged_joints
from gapless.twin import Residual, Twin

Mode = Literal["off", "auto", "force"]
NAME = "+ learned residual"


def must_suit(twin: Twin, logs: Sequence[Log], mode: Mode) -> None:
    """Refuse to force a residual that cannot be learned from these logs, before a long fit."""
    if mode != "force":
        return
    why = unsuitable(twin, split_logs(admit(twin, logs).logs, twin.joints))
    if why:
        raise BadInput(f"--residual force: {why}")


def learn(fit: Fit, logs: Sequence[Log], mode: Mode = "auto", tick: Tick = lambda text: None) -> tuple[Fit, Learnt | None]:
    """A fit with learned torque, where that predicts what it has not seen better; and how good it is.

    Args:
        fit: the physics, as `identify.fit` found it.
        logs: what it was fitted to.
        mode: `auto` keeps networks where held-out error truly falls, `force` keeps them all, `off` learns none.
        tick: told what is being done.
    """
    if mode == "off":
        return fit, None
    started = time.perf_counter()
    twin, logs = fit.twin, admit(fit.twin, logs).logs
    split = split_logs(logs, twin.joints)
    why = unsuitable(twin, split) or _no_ground(fit)
    if why and mode == "force":
        raise BadInput(f"--residual force: {why}")
    if why:
        return replace(fit, warnings=[*fit.warnings, f"no residual was learned: {why}"]), None
    physics = Physics(twin, np.stack([fit.values, *fit.halves]), fit.zeros, fit.traces, fit.finer)
    nets, data = trained(physics, setting_of(twin, logs, split), False, lambda text: tick(f"{NAME}: {text}"))
    tick(f"{NAME}: checking in the full model")
    scorer = Scorer(twin.joints, logs, split, split.spread(split.logs, SCORE_SECONDS / twin.model.nv), [], twin)
    every = physics.predicted(Residual(tuple(nets)), scorer)
    alone = physics.best(scorer)
    kept = nets if mode == "force" else worth_it(nets, alone, every[2], noise(logs, twin.joints))
    grown, vectors, shown = every if len(kept) in (0, len(nets)) else physics.predicted(Residual(tuple(kept)), scorer)
    before, after = (by_block(t, "heldout", len(split)) for t in (fit.traces, shown))
    gain, error = gain_of(list(before.T), list(after.T))
    added = mode == "force" or bool(kept and gain > max(error, LEAST) and carries(physics, grown, vectors, logs, split))
    heldout = float(np.sqrt(np.nanmean(after, axis=0)).mean())
    ladder = [*fit.ladder, Rung(NAME, heldout, gain, error, added)]
    tick(f"{NAME}: held-out {np.degrees(heldout):.3f} deg")
    found = replace(fit, ladder=ladder)
    if added:
        traces = [replace(old, twin=new.twin, heldout=new.heldout) for old, new in zip(fit.traces, shown, strict=True)]
        found = replace(found, twin=grown, values=vectors[0], halves=vectors[1:], traces=traces)
        found = replace(found, train=scores(traces, "twin"), heldout=scores(traces, "heldout"))
    found, base = pulled(found, logs, split, mode == "force", lambda text: tick(f"{NAME}: {text}"))
    seconds = time.perf_counter() - started
    learnt = Learnt(
        robot=fit.robot,
        kept=added or bool(base and base.kept),
        heldout_before=fit.heldout.fit,
        heldout_after=heldout,
        joints=judged_joints(fit.traces, shown, nets, kept if added else [], data),
        motions=_by_motion(fit.traces, shown),
        seconds=seconds,
        seconds_used=split.seconds(split.logs),
        seconds_given=fit.seconds_given,
        base=base,
        nets=tuple(kept) if added else (),
    )
    return replace(found, seconds=fit.seconds + seconds) if learnt.kept else found, learnt


def _no_ground(fit: Fit) -> str:
    """Why a fit is no ground to learn on; empty where it is one."""
    if fit.against:
        return f"the physics does not predict ({fit.against[0]})"
    if not fit.traces or not len(fit.halves):
        return "the fit was loaded from a folder, which keeps no halves: fit again"
    return ""


def _by_motion(before: Sequence[Trace], after: Sequence[Trace]) -> dict[str, tuple[float, float]]:
    """Held-out error of each log without and with networks, mean over joints [rad]."""

    def error(trace: Trace) -> float:
        return float(np.sqrt((trace.error("heldout") ** 2).mean(axis=0)).mean())

    return {old.name: (error(old), error(new)) for old, new in zip(before, after, strict=True)}
