"""Admission: what a log and a model must have before the log is replayed in the model, explained by it or fitted to.

admitted = admit(twin, logs)                      # admitted.refused and admitted.notes say what was left out, and why
kept, notes = admitted_part(twin, log)            # the same for one log that is only replayed
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import degrees, pi, radians

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.delay import rows_in_force
from gapless.errors import BadInput, PhysicsError
from gapless.logs import ERROR, STILL, Log, clock_findings, joint_findings, travel
from gapless.measure.clean import WORTH, usable
from gapless.measure.comparable import TIPPING, commands_for, fall, long_enough, moving
from gapless.report import few
from gapless.robots import Drive, base_joint, every_drive
from gapless.twin import Twin
from gapless.worlds import Replayer, quiet

COMMANDED = 0.15  # rad that a joint must be told to move before it is asked whether it did
DEAD = 0.02  # share of the commanded motion; the least on real robots was 0.25, of a servo too weak for its load
HELD = 0.25  # share of the commanded motion: a joint that moves less need not do as it is told, for it sticks
ALIKE = 0.4  # correlation with the command; the least on real robots was 0.77
LATE = 0.5  # s that a joint may follow late
OUTSIDE, OFTEN = 0.1, 0.2  # share of a joint's range beyond its ends, and share of the samples there
POSES, DEEP, ALWAYS = 25, 0.005, 0.9  # poses that are looked at; m that links are in each other, in this share of the poses
BEGINNING = 1.0  # s that the model as given must survive
CHECK = "check that its drive is enabled and wired, and that its name is not swapped with another joint's"


@dataclass(frozen=True)
class Admitted:
    """The logs that can be fitted to."""

    logs: list[Log]
    """Their usable parts."""
    refused: dict[int, str]
    """Why the others are not among them, by their number."""
    notes: list[str]
    """What is odd about those that are, and what was left out of them."""


def admit(twin: Twin, logs: Sequence[Log]) -> Admitted:
    """Let in the logs that can be fitted to; if there is none, the error of the first."""
    let_in: list[Log] = []
    refused: dict[int, BadInput | PhysicsError] = {}
    notes: list[str] = []
    files: dict[tuple[str, float], str] = {}
    for i, log in enumerate(logs):
        try:
            recording = log.provenance.sha256, log.start
            if recording in files:
                raise BadInput(f"{log.name}: the same recording as {files[recording]}")
            kept, noted = admitted_part(twin, log)
            moving([kept])
            notes += noted
        except (BadInput, PhysicsError) as error:
            refused[i] = error
            continue
        let_in.append(kept)
        if log.provenance.sha256:
            files[recording] = log.name
    if not let_in:
        first = next(iter(refused.values()), BadInput("there is no log to fit to"))
        raise first if len(refused) < 2 else type(first)(f"none of the {len(refused)} logs can be fitted to; {first}")
    long_enough(let_in)
    return Admitted(let_in, {i: str(error) for i, error in refused.items()}, notes)


def admitted_part(twin: Twin, log: Log, values: Array | None = None) -> tuple[Log, list[str]]:
    """The usable part of a log that can be replayed in a twin, and what is odd about it or was left out of it.

    values: parameters over the twin's space; nominal unless given. Shape: (parameters,).
    """
    kept, left_out = _readable(twin, log)
    notes = left_out + _unknown(twin, kept) + _ranges(twin, kept) + _follows(twin, kept)
    _overlaps(twin, kept)
    _survives(twin, kept, twin.space.nominal if values is None else values)
    return kept, notes


def _readable(twin: Twin, log: Log) -> tuple[Log, list[str]]:
    """The usable part of a log that has all that the twin's drives need, and what was left out of it."""
    commands = commands_for(twin, log)
    for finding in clock_findings(log):
        if finding.severity == ERROR and {"q", *commands} & set(finding.signal.split(", ")):
            raise BadInput(f"{log.name}: {finding.sentence}")
    fell, fallen = fall(twin, log), []
    if fell is not None:
        if fell - TIPPING < log.start + BEGINNING:
            raise BadInput(f"{log.name}: the robot fell over after {fell - log.start:.1f} s: record it while it stands")
        fallen = [f"{log.name}: the robot fell over after {fell - log.start:.1f} s; only what came before is used"]
        log = log.slice(log.start, fell - TIPPING)
    kept, left_out = usable(log, twin.joints, commands)
    return kept, fallen + left_out


def _unknown(twin: Twin, log: Log) -> list[str]:
    """A sentence about joints that carry driven ones, have no drive and were not measured: a planar base, say."""
    model = twin.model
    tied = {*model.wrap_objid[model.wrap_type == mujoco.mjtWrap.mjWRAP_JOINT]}
    tied |= {*model.eq_obj1id[model.eq_type == mujoco.mjtEq.mjEQ_JOINT]}
    tied |= {d.joint for d in every_drive(model)}
    driven = {d.name: int(model.jnt_bodyid[d.joint]) for d in twin.drives}
    carriers = set(driven.values())
    for body in range(model.nbody - 1, 0, -1):  # parents come before their children
        carriers |= {int(model.body_parentid[body])} if body in carriers else set()
    names = []
    for j in (j for j in range(model.njnt) if j not in tied and model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE):
        name, body = model.joint(j).name, int(model.jnt_bodyid[j])
        inside = any(body == at and name.startswith(f"{drive}_") for drive, at in driven.items())  # play or spring of a drive
        names += [name] if body in carriers and not inside else []
    absent = [name for name in names if name not in log["q"].columns]
    if not absent:
        return []
    return [
        f"{log.name}: {few(absent)} of {twin.name} move by themselves, carry other joints, and were not measured: each replay "
        "starts with them in the home pose, so log them (in q), or fix them in the model if they were held"
    ]


def _ranges(twin: Twin, log: Log) -> list[str]:
    """Measured positions against the model's joint ranges; sentences where they leave them by a little."""
    notes = []
    for d in twin.drives:
        if not twin.model.jnt_limited[d.joint]:
            continue
        q = log["q"].column(d.name)
        q = q[np.isfinite(q)]
        low, high = twin.model.jnt_range[d.joint].tolist()
        beyond = np.maximum(low - q, q - high) / (high - low)
        said = f"{log.name}: {_measured(twin, d, log)}"
        if np.mean(beyond > OUTSIDE) > OFTEN:
            raise BadInput(f"{said}: {_guess(q, low, high, _hinge(twin, d))}")
        if np.mean(beyond > OUTSIDE / 2) > WORTH:
            notes.append(f"{said}: widen its range, or check its encoder's zero")
    return notes


def _measured(twin: Twin, d: Drive, log: Log) -> str:
    """Where a joint was, and where it may be."""
    q = log["q"].column(d.name)
    low, high = twin.model.jnt_range[d.joint]
    allowed = f"{low:.3g} to {high:.3g}" if twin.model.jnt_limited[d.joint] else "any position"
    unit = "rad" if _hinge(twin, d) else "m"
    return f"{d.name} was measured at {np.nanmin(q):.3g} to {np.nanmax(q):.3g} {unit}, and {twin.name} allows {allowed}"


def _hinge(twin: Twin, d: Drive) -> bool:
    return bool(twin.model.jnt_type[d.joint] == mujoco.mjtJoint.mjJNT_HINGE)


def _guess(q: Array, low: float, high: float, hinge: bool) -> str:
    """What may have put positions outside a range."""
    low, high = low - OUTSIDE * (high - low), high + OUTSIDE * (high - low)
    if hinge and np.abs(q).max() > pi and np.ptp(q) > 5 and low <= radians(q.min()) and radians(q.max()) <= high:
        return "these look like degrees, so state the unit in a mapping"
    if low <= -q.max() and -q.min() <= high:
        return "with the other sign it fits, so check its direction, then its encoder's zero"
    if np.ptp(q) <= high - low:
        off = float(np.median(q)) - (low + high) / 2
        size = f"{off:.2g} rad, {degrees(off):.0f} deg" if hinge else f"{off:.2g} m"
        return f"check its encoder's zero (off by about {size}?), then its sign and unit"
    return "check its unit (degrees?), its encoder's zero and sign, or the model's range"


def _follows(twin: Twin, log: Log) -> list[str]:
    """Whether each joint does what it is told, or something like it; sentences where it is stopped or its zero is off."""
    clock, name = log["q"].time, log.name
    findings, held = list(joint_findings(log, twin.ranges)), list[str]()
    wrong = {f.joint: f for f in findings if f.severity == ERROR and f.signal in ("q", "q_cmd")}
    for d in (d for d in twin.drives if not d.passive):
        kind, q = d.signal, log["q"].column(d.name)
        on = np.isfinite(q)
        if "enabled" in log and d.name in log["enabled"].columns:
            on &= log.at("enabled", clock)[:, log["enabled"].columns.index(d.name)] > 0.5
        if on.sum() < 20:
            continue
        sent, u = log[f"{kind}_cmd"].time, log[f"{kind}_cmd"].column(d.name)
        commanded, moved = float(np.ptp(u[rows_in_force(sent, clock[on])])), travel(q[on])
        if kind == "tau" and commanded > 0 and moved < STILL:
            raise BadInput(f"{name}: {d.name} stands still, while its torque varies by {commanded:.2g} N m: {CHECK}")
        if kind != "q" or commanded < COMMANDED:
            continue
        in_degrees = d.name in wrong and wrong[d.name].code == "degrees"
        if moved < DEAD * commanded and not in_degrees:
            raise BadInput(f"{name}: {d.name} is told to move by {commanded:.2g} rad and moves by {moved:.1g}: {CHECK}")
        if d.name in wrong:
            raise BadInput(f"{name}: {wrong[d.name].sentence}")
        lags = np.arange(0.0, LATE, max(0.01, 1 / log.rate("q")))
        if not any(_correlation(u[rows_in_force(sent, clock[on] - lag)], q[on]) > ALIKE for lag in lags):
            if moved < HELD * commanded:  # by friction, and what moves it then is mostly the others
                held.append(f"{name}: {d.name} is told to move by {commanded:.2g} rad and moves by {moved:.1g}: too weak?")
                continue
            raise BadInput(f"{name}: {d.name} moves, but not as it is told: {CHECK}")
    if not any(travel(column) > STILL for column in log["q"].values.T):
        held.append(f"{name}: no joint moves, so it says little about the model: record motion (`gapless excite` plans one)")
    return [*held, *(f"{name}: {f.sentence}" for f in findings if f.code in ("stop", "zero"))]


def _overlaps(twin: Twin, log: Log) -> None:
    """Links that the model has inside each other wherever the robot was."""
    model, data = twin.model, mujoco.MjData(twin.model)
    q = log["q"].of(twin.joints)
    q = q[np.isfinite(q).all(axis=1)]
    poses = q[np.linspace(0, len(q) - 1, min(POSES, len(q))).astype(int)]
    often: Counter[str] = Counter()
    floats = base_joint(model) is not None  # then where the floor is, is not known
    for pose in poses:
        data.qpos[[d.qpos for d in twin.drives]] = pose
        mujoco.mj_fwdPosition(model, data)
        deep = [
            c.geom
            for c in data.contact
            if c.dist < -DEEP and not (floats and 0 in model.body_weldid[model.geom_bodyid[c.geom]])
        ]
        often.update({" and ".join(sorted(model.body(model.geom_bodyid[g]).name for g in pair)) for pair in deep})
    for links, count in often.items():
        if count > ALWAYS * len(poses):
            raise BadInput(
                f"{log.name}: {links} of {twin.name} are {1e3 * DEEP:g} mm and more inside each other wherever the robot "
                "was measured: exclude their contact in the model, or check encoder zeros, signs and units"
            )


def _survives(twin: Twin, log: Log, values: Array) -> None:
    """Whether the model as given lives through its first second from the measured state."""
    broke = Replayer(twin, log, end=BEGINNING)(values).broke
    if not broke:
        return
    d = _wildest(twin, log)
    raise PhysicsError(
        f"{log.name}: the physics of {twin.name} breaks within {BEGINNING:g} s of the measured start ({broke}); "
        f"{_measured(twin, d, log)}: check its encoder's zero, sign and unit, its gain and armature, and the time step of "
        f"{twin.model.opt.timestep:g} s"
    )


def _wildest(twin: Twin, log: Log) -> Drive:
    """The drive with the greatest acceleration from the measured start to where physics breaks."""
    model, data = twin.model, mujoco.MjData(twin.model)
    dofs = [d.dof for d in twin.drives]
    data.qpos[[d.qpos for d in twin.drives]] = log["q"].of(twin.joints)[0]
    for d in twin.drives:
        data.ctrl[d.control] = 0.0 if d.passive else log[f"{d.signal}_cmd"].column(d.name)[0]
    worst = np.zeros(len(dofs))
    with quiet():
        for _ in range(int(BEGINNING / model.opt.timestep)):
            mujoco.mj_step(model, data)
            if any(w.number for w in data.warning):
                break
            worst = np.maximum(worst, np.abs(data.qacc[dofs]))
    return twin.drives[int(worst.argmax())]


def _correlation(a: Array, b: Array) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if np.std(a) * np.std(b) > 0 else 0.0
