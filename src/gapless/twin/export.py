"""Export: what a fit found as the actuator and randomisation settings that mjlab, Isaac Lab and MuJoCo Playground take.

    print(mjlab(*read("fitted")))

Values are those of the twin, ranges the belief's 90 % intervals. What logs do not determine stays at its fitted value, with its
interval in a comment: the frameworks draw each number alone, and drawn alone it would leave what the logs do say.
"""

from __future__ import annotations

import json
import math
import os
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from gapless import files as disk
from gapless.errors import BadInput
from gapless.robots import drives, is_dc_motor, is_position_servo
from gapless.twin import callback
from gapless.twin.belief import Belief
from gapless.twin.belief import load as load_belief

FILES = ("twin.xml", "belief.json", "fit.json")
MOST_BYTES = 64 * 2**20  # of fit.json
DRAWS = 4000  # of the belief, for the interval of a friction that several parameters make up
QUANTITIES = {
    "kp": "gains.kp",
    "kd": "gains.kd",
    "limit": "motor.limit",
    "armature": "armature.inertia",
    "dry": "friction.coulomb",
    "viscous": "friction.viscous",
}
ANGLE = ("friction.angle", "friction.angle2")


@dataclass(frozen=True)
class Number:
    """A fitted value, and the interval to draw it from; the ends are the value where it is not to be drawn."""

    value: float
    low: float
    high: float
    log: bool = False
    """Whether it is wrong by factors, and to be drawn so."""
    remark: str = ""

    @classmethod
    def known(cls, value: float) -> Number:
        """A number that is not drawn."""
        return cls(float(value), float(value), float(value))

    @property
    def drawn(self) -> bool:
        return self.low < self.high

    def times(self, factor: float) -> Number:
        return replace(self, value=factor * self.value, low=factor * self.low, high=factor * self.high)


ONE = Number.known(1.0)


@dataclass(frozen=True)
class Settings:
    """All that the frameworks are told, by the twin's joint names in the order of its joints."""

    joints: dict[str, dict[str, Number]]
    """Joint to quantity: kp, kd, limit (if any), armature, viscous, and friction in motion (dry) and at rest (static)."""
    delay: Number
    """Of commands [s]."""
    step: float
    """Of the twin's physics [s]."""
    about: tuple[str, ...]
    """Paragraphs for the head of the file."""
    beyond: tuple[str, ...]
    """What was fitted and has no place in a plain PD drive with constant friction."""

    def of(self, quantity: str) -> dict[str, Number]:
        """One quantity by joint."""
        return {joint: numbers[quantity] for joint, numbers in self.joints.items() if quantity in numbers}

    def drawn(self, quantity: str) -> dict[str, Number]:
        """One quantity of the joints where it is to be drawn."""
        return {joint: n for joint, n in self.of(quantity).items() if n.drawn}


def read(folder: str | os.PathLike[str]) -> tuple[mujoco.MjModel, Belief, dict[str, Any]]:
    """The twin, the belief and the summary in a folder that `gapless fit` made."""
    folder = Path(folder)
    for name in FILES:
        if not (folder / name).is_file():
            raise BadInput(
                f"{folder} is not the folder of a fit, it has no {name}: make one with `gapless fit MODEL LOG --out DIR`"
            )
    try:
        model = mujoco.MjModel.from_xml_path(str(folder / "twin.xml"))
    except ValueError as error:
        raise BadInput(f"{folder / 'twin.xml'}: MuJoCo cannot load it ({disk.reason(error)})") from None
    try:
        summary = json.loads(disk.text(folder / "fit.json", MOST_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{folder / 'fit.json'}: not valid JSON ({disk.reason(error)})") from None
    if not isinstance(summary, dict) or not isinstance(summary.get("parameters"), dict):
        raise BadInput(f"{folder / 'fit.json'}: not the summary of a fit, it has no parameters")
    return model, load_belief(folder / "belief.json"), summary


def gather(model: mujoco.MjModel, belief: Belief, summary: Mapping[str, Any]) -> Settings:
    """Line the twin's drives up with what was fitted."""
    found = _intervals(belief, summary)
    draws = _draws(belief)
    joints: dict[str, dict[str, Number]] = {}
    used: set[str] = set()
    for d in sorted(drives(model), key=lambda d: d.joint):
        if is_dc_motor(model, d.actuator):
            raise BadInput(f"joint {d.name!r} has a DC motor, and only drives with kp and kd [Nm] can be exported so far")
        if not is_position_servo(model, d.actuator):
            raise BadInput(f"joint {d.name!r} takes no position command, and only drives with kp and kd can be exported so far")
        given = {
            "kp": model.actuator_gainprm[d.actuator, 0],
            "kd": -model.actuator_biasprm[d.actuator, 2],
            "armature": model.dof_armature[d.dof],
            "viscous": model.dof_damping[d.dof],
        }
        if model.actuator_forcelimited[d.actuator]:
            given["limit"] = np.abs(model.actuator_forcerange[d.actuator]).max()
        elif model.jnt_actfrclimited[d.joint]:
            given["limit"] = np.abs(model.jnt_actfrcrange[d.joint]).max()
        strength = found.get(f"motor.strength/{d.name}", ONE).value * belief.space.fixed.get(f"motor.strength/{d.name}", 1.0)
        numbers = {}
        for quantity, value in given.items():
            name, scale = f"{QUANTITIES[quantity]}/{d.name}", strength if quantity in ("kp", "kd", "limit") else 1.0
            numbers[quantity] = found[name].times(scale) if name in found else Number.known(value)
            _agree(name, numbers[quantity].value, float(value))
        numbers["dry"], resting = _dry(model, d.joint, d.dof, d.name, found, draws, _pose(model, d, summary))
        numbers["static"] = Number.known(numbers["dry"].value + resting)
        joints[d.name] = numbers
        used |= {f"{q}/{d.name}" for q in (*QUANTITIES.values(), "motor.strength")}
    late = [n for name, n in found.items() if name.partition("/")[0] == "latency.action"]
    if not late:
        late = [Number.known(model.actuator_delay.max(initial=0.0))]
    middle = float(np.mean([n.value for n in late]))
    delay_number = Number(middle, min(n.low for n in late), max(n.high for n in late), remark=late[0].remark)
    kinds: dict[str, int] = {}
    for name in found:
        if name not in used and not name.startswith("latency.action"):
            kinds[name.partition("/")[0]] = kinds.get(name.partition("/")[0], 0) + 1
    beyond = tuple(f"{kind} ({count} fitted)" for kind, count in kinds.items())
    return Settings(joints, delay_number, float(model.opt.timestep), _about(summary), beyond)


def _intervals(belief: Belief, summary: Mapping[str, Any]) -> dict[str, Number]:
    """The twin's parameters that were fitted, by name, with the summary's intervals."""
    out: dict[str, Number] = {}
    for p in belief.space.parameters:
        try:
            entry = summary["parameters"][p.name]
            value, low, high = (float(entry[k]) for k in ("value", "low", "high"))
        except (KeyError, TypeError, ValueError):
            raise BadInput(
                f"fit.json does not say what {p.name} is, though belief.json does: they are not of the same fit"
            ) from None
        if not (math.isfinite(value + low + high) and low <= high):
            raise BadInput(f"fit.json has no proper interval for {p.name}")
        number = Number(value, min(low, value), max(high, value), p.log and low > 0)
        if not entry.get("identified", True) or entry.get("at_bound"):
            why = "at a bound" if entry.get("at_bound") else "not determined by the logs"
            number = Number(value, value, value, remark=f"{why}; 90 % interval {low:.4g} to {high:.4g}")
        out |= dict.fromkeys(p.members or (p.name,), number)
    return out


def _draws(belief: Belief) -> dict[str, np.ndarray]:
    drawn = belief.sample(DRAWS, np.random.default_rng(0))
    return {m: drawn[:, i] for i, p in enumerate(belief.space.parameters) for m in p.members or (p.name,)}


def _agree(name: str, said: float, is_: float) -> None:
    if not math.isclose(said, is_, rel_tol=1e-3, abs_tol=1e-6):
        raise BadInput(f"{name} is {said:g} in fit.json and {is_:g} in twin.xml: they are not of the same fit")


def _pose(model: mujoco.MjModel, drive: Any, summary: Mapping[str, Any]) -> float:
    """The angle at which friction is exported: where the summary says that the joint was, else the middle of its range."""
    said = summary.get("pose")
    if isinstance(said, dict) and isinstance(said.get(drive.name), int | float):
        return float(said[drive.name])
    return float(model.jnt_range[drive.joint].mean() if model.jnt_limited[drive.joint] else model.qpos0[drive.qpos])


def _dry(
    model: mujoco.MjModel,
    joint: int,
    dof: int,
    name: str,
    found: Mapping[str, Number],
    draws: Mapping[str, np.ndarray],
    at: float,
) -> tuple[Number, float]:
    """Dry friction of a moving, unloaded joint at an angle, and what is added to it at rest (Stribeck's) [Nm]."""
    coulomb = float(model.dof_frictionloss[dof])
    alone = found.get(f"friction.coulomb/{name}", Number.known(coulomb))
    if not (callback.needed(model) and model.jnt_user[joint, -1] == callback.MARKED):
        return alone, 0.0
    stribeck, _, _, _, angle, angle2, home, _ = model.jnt_user[joint, callback.slot(model) :]
    if not angle and not angle2:
        return alone, float(stribeck)
    x = at - home
    value = max(0.0, float(coulomb + angle * x + angle2 * x**2))
    parts = [
        draws.get(f"{q}/{name}", np.full(DRAWS, v))
        for q, v in (("friction.coulomb", coulomb), *zip(ANGLE, (angle, angle2), strict=True))
    ]
    low, high = np.maximum(np.quantile(parts[0] + parts[1] * x + parts[2] * x**2, (0.05, 0.95)), 0.0).tolist()
    return Number(value, min(low, value), max(high, value), remark=f"at {at:.3g} rad; it depends on the angle"), float(stribeck)


def _about(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """Who made this from what, and how good it is."""
    errors = (summary.get("errors") or {}).get("heldout") or {}
    said = [
        f"{label} {math.degrees(errors[key]):.3g}"
        for key, label in (("fit", "fitted"), ("nominal", "as given"), ("delay", "best delay"), ("command", "command"))
        if isinstance(errors.get(key), int | float)
    ]
    out = [f"Robot: {summary.get('robot', 'not named')}. Logs: {', '.join(map(str, summary.get('logs') or ['not named']))}."]
    if said:
        out.append(f"Held-out position error [deg]: {', '.join(said)}.")
    if summary.get("trusted") is False:
        out.append(
            "DO NOT USE THIS FIT: " + (" ".join(map(str, summary.get("warnings") or [])) or "it does not beat the baselines.")
        )
    return tuple(out)


# Below, the frameworks' own settings as templates, which read as what they make. Whatever comes from files goes through one of
# the filters at the end, so that no name of a joint can be read as code.

_HEAD = """\
{{ (framework ~ " settings, exported by gapless " ~ version ~ ". Written against " ~ against ~ ".") | comment }}
{%- for paragraph in s.about %}
{{ paragraph | comment }}
{%- endfor %}
{{ (framework ~ " cannot express " ~ cannot ~ ".") | comment }}
{%- if s.beyond %}
{{ ("Fitted and in twin.xml, but not as such in what follows: " ~ s.beyond | join(", ") ~ ".") | comment }}
{%- endif %}
{%- for note in notes %}
{{ note | comment }}
{%- endfor %}
{{ "Ranges are 90 % intervals, drawn one by one; the belief knows how they go together: corners are rarer there." | comment }}

{% block imports %}{% endblock %}

PHYSICS_DT = {{ s.step | number }}  # s: the twin's; put your own physics step here
COMMAND_DELAY = {{ s.delay | pair }}  # s; {{ s.delay | fitted }}
LAG = (math.floor(COMMAND_DELAY[0] / PHYSICS_DT + 1e-9), math.ceil(COMMAND_DELAY[1] / PHYSICS_DT - 1e-9))  # steps
{% block settings %}{% endblock %}
"""

_MJLAB = """\
{% extends "head" %}
{%- block imports -%}
import math

from mjlab.actuator import BuiltinPositionActuatorCfg
from mjlab.envs.mdp import dr
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
{%- endblock %}
{%- block settings -%}
# One lag an episode, the same for all joints.
DELAY = {
    "delay_min_lag": LAG[0],
    "delay_max_lag": LAG[1],
    "delay_update_period": 10**9,
    "delay_per_env_phase": False,
}

# For EntityArticulationInfoCfg(actuators=ACTUATORS).
ACTUATORS = (
{%- for joint, n in s.joints.items() %}
    BuiltinPositionActuatorCfg(
        target_names_expr=({{ joint | pattern }},),
        stiffness={{ n.kp | value }}
        damping={{ n.kd | value }}
        {%- if "limit" in n %}
        effort_limit={{ n.limit | value }}
        {%- endif %}
        armature={{ n.armature | value }}
        frictionloss={{ n.dry | value }}
        viscous_damping={{ n.viscous | value }}
        **DELAY,
    ),
{%- endfor %}
)

# For the events of your environment's configuration.
EVENTS = {
{%- for joint, n in s.joints.items() if n.kp.drawn or n.kd.drawn %}
    "gapless_gains_{{ loop.index }}": EventTermCfg(
        mode="startup",
        func=dr.pd_gains,
        params={
            "asset_cfg": SceneEntityCfg("robot", actuator_names=({{ joint | pattern }},)),
            "kp_range": {{ n.kp | pair }},
            "kd_range": {{ n.kd | pair }},
            "operation": "abs",
            "distribution": "{{ [n.kp, n.kd] | how }}",
        },
    ),
{%- endfor %}
{%- for function, quantity in functions.items() if s.drawn(quantity) %}
    "gapless_{{ quantity }}": EventTermCfg(
        mode="startup",
        func=dr.{{ function }},
        params={
            "asset_cfg": SceneEntityCfg("robot"),
            "ranges": {
            {%- for joint, n in s.drawn(quantity).items() %}
                {{ joint | pattern }}: {{ n | pair }},
            {%- endfor %}
            },
            "operation": "abs",
            "distribution": "{{ s.drawn(quantity).values() | how }}",
        },
    ),
{%- endfor %}
}
{%- endblock %}
"""

_ISAACLAB = """\
{% extends "head" %}
{%- block imports -%}
import math

from isaaclab.actuators import DelayedPDActuatorCfg
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg
{%- endblock %}
{%- block settings %}
# For ArticulationCfg(actuators=ACTUATORS).
ACTUATORS = {
    "gapless": DelayedPDActuatorCfg(
        joint_names_expr=[
        {%- for joint in s.joints %}
            {{ joint | pattern }},
        {%- endfor %}
        ],
        {%- for field, quantity in fields.items() if s.of(quantity) %}
        {{ field }}={
        {%- for joint, n in s.of(quantity).items() %}
            {{ joint | pattern }}: {{ n | value }}
        {%- endfor %}
        },
        {%- endfor %}
        min_delay=LAG[0],
        max_delay=LAG[1],
    ),
}

# for name, term in EVENTS.items(): setattr(env_cfg.events, name, term)
EVENTS = {
{%- for joint, numbers in s.joints.items() %}{% set number = loop.index %}
{%- for function, properties in functions.items() %}{% set drawn = scaled(numbers, properties) %}{% if drawn %}
    "gapless_{{ function }}_{{ number }}": EventTermCfg(
        func=mdp.randomize_{{ function }},
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", joint_names=[{{ joint | pattern }}]),
            {%- for property, n in drawn.items() %}
            "{{ property }}_distribution_params": {{ n | pair }},
            {%- endfor %}
            "operation": "scale",
            "distribution": "{{ drawn.values() | how }}",
        },
    ),
{%- endif %}{% endfor %}{% endfor %}
}
{%- endblock %}
"""

_PLAYGROUND = '''\
{% extends "head" %}
{%- block imports -%}
import math

import jax
import jax.numpy as jp
import mujoco
import numpy as np
from mujoco import mjx
{%- endblock %}
{%- block settings %}
# Joint to the ends of what is drawn, in SI units; equal ends are not drawn. LOG: on a logarithmic scale.
{%- for name, quantity in fields.items() %}
{{ name }} = {
{%- for joint, n in s.of(quantity).items() %}
    {{ joint | text }}: {{ n | pair }},  # {{ n | fitted }}
{%- endfor %}
}
{{ name }}_LOG = {{ s.of(quantity).values() | how == "log_uniform" }}
{%- endfor %}


def domain_randomize(model: mjx.Model, rng: jax.Array):
    """Draw the drives once for each key; returns the batched model and the axes to map over."""
    joints = np.array([mjx.name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in KP])
    if (joints < 0).any():
        raise ValueError(f"the model lacks joints: {[name for name, j in zip(KP, joints) if j < 0]}")
    dofs = np.asarray(model.jnt_dofadr)[joints]
    actuators = np.array([np.flatnonzero(np.asarray(model.actuator_trnid)[:, 0] == j)[0] for j in joints])

    def draw(key, ranges, log):
        low, high = jp.array(list(ranges.values())).T
        if log:
            return jp.exp(jax.random.uniform(key, low.shape, minval=jp.log(low), maxval=jp.log(high)))
        return jax.random.uniform(key, low.shape, minval=low, maxval=high)

    @jax.vmap
    def rand_dynamics(rng):
        keys = jax.random.split(rng, 5)
        kp, kd = draw(keys[0], KP, KP_LOG), draw(keys[1], KD, KD_LOG)
        return {
            "actuator_gainprm": model.actuator_gainprm.at[actuators, 0].set(kp),
            "actuator_biasprm": model.actuator_biasprm.at[actuators, 1].set(-kp).at[actuators, 2].set(-kd),
            "dof_armature": model.dof_armature.at[dofs].set(draw(keys[2], ARMATURE, ARMATURE_LOG)),
            "dof_frictionloss": model.dof_frictionloss.at[dofs].set(draw(keys[3], FRICTIONLOSS, FRICTIONLOSS_LOG)),
            "dof_damping": model.dof_damping.at[dofs].set(draw(keys[4], DAMPING, DAMPING_LOG)),
        }

    fields = rand_dynamics(rng)
    in_axes = jax.tree_util.tree_map(lambda x: None, model)
    in_axes = in_axes.tree_replace({name: 0 for name in fields})
    return model.tree_replace(fields), in_axes
{%- endblock %}
'''


def mjlab(model: mujoco.MjModel, belief: Belief, summary: Mapping[str, Any]) -> str:
    """Settings for mjlab: one position actuator a joint, and startup events that draw within the intervals."""
    return _fill(
        _MJLAB,
        gather(model, belief, summary),
        framework="mjlab",
        against="mjlab 1.3 to 1.6 (viscous_damping and delay_min_lag came with 1.3.0; dr as in the documentation of 1.6.0)",
        cannot="friction that depends on speed (Stribeck), load or angle, nor a delay of a part of a physics step",
        notes=["dr.pd_gains finds drives by their place: keep ACTUATORS whole and in order, and no other actuator in the XML."],
        functions={"joint_armature": "armature", "joint_friction": "dry", "joint_damping": "viscous"},
    )


def isaaclab(model: mujoco.MjModel, belief: Belief, summary: Mapping[str, Any]) -> str:
    """Settings for Isaac Lab: a delayed PD actuator, and startup events that scale within the intervals."""

    def scaled(numbers: dict[str, Number], properties: dict[str, str]) -> dict[str, Number]:
        fitted = {name: numbers[quantity] for name, quantity in properties.items()}
        return {name: n.times(1 / n.value) for name, n in fitted.items() if n.drawn and n.value > 0}

    return _fill(
        _ISAACLAB,
        gather(model, belief, summary),
        framework="Isaac Lab",
        against="Isaac Lab 2.3.2 and 3.0 (in 3.0 actuator_effort_limit is the new name of effort_limit)",
        cannot="friction that depends on load or angle, the speed at which it falls from static to dynamic (Stribeck), nor a "
        "delay of a part of a physics step",
        notes=[
            "Static friction is dynamic friction and Stribeck's.",
            "PhysX draws static, dynamic and viscous friction from one range, so they are scaled, not set.",
            "PhysX is not MuJoCo: replay a log there before you trust the numbers.",
        ],
        fields={
            "stiffness": "kp",
            "damping": "kd",
            "effort_limit": "limit",
            "armature": "armature",
            "friction": "static",
            "dynamic_friction": "dry",
            "viscous_friction": "viscous",
        },
        functions={
            "actuator_gains": {"stiffness": "kp", "damping": "kd"},
            "joint_parameters": {"friction": "dry", "armature": "armature"},
        },
        scaled=scaled,
    )


def playground(model: mujoco.MjModel, belief: Belief, summary: Mapping[str, Any]) -> str:
    """Settings for MuJoCo Playground: a `domain_randomize(model, rng)` that sets the drives to draws within the intervals."""
    return _fill(
        _PLAYGROUND,
        gather(model, belief, summary),
        framework="MuJoCo Playground",
        against="playground 0.2.0 with mujoco-mjx 3.6 (the form of mujoco_playground/_src/locomotion/go2/randomize.py)",
        cannot="friction that depends on speed (Stribeck), load or angle, nor delay",
        notes=[
            "Delay: have your environment's step use the command of LAG[0] to LAG[1] physics steps ago, one lag an episode.",
            "MJX gives dry friction only to joints with frictionloss above 0 in the XML; torque limits are the XML's.",
        ],
        fields={"KP": "kp", "KD": "kd", "ARMATURE": "armature", "FRICTIONLOSS": "dry", "DAMPING": "viscous"},
    )


FRAMEWORKS: dict[str, Callable[[mujoco.MjModel, Belief, Mapping[str, Any]], str]] = {
    "mjlab": mjlab,
    "isaaclab": isaaclab,
    "playground": playground,
}


def _fill(template: str, settings: Settings, **more: Any) -> str:
    import importlib.metadata

    import jinja2

    # what is made is Python, not HTML: the filters make names and numbers safe there
    loader = jinja2.DictLoader({"head": _HEAD, "body": template})
    made = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    made.filters |= {
        "comment": lambda text: "\n".join(textwrap.wrap(_clean(text), 118, initial_indent="# ", subsequent_indent="# ")),
        "text": ascii,
        "pattern": lambda name: ascii(re.escape(name)),
        "number": _number,
        "pair": lambda n: f"({_number(n.low)}, {_number(n.high)})",
        "value": _value,
        "fitted": lambda n: _clean("; ".join([f"fitted {n.value:.6g}"] + [n.remark] * bool(n.remark))),
        "how": lambda numbers: "log_uniform" if all(n.low > 0 and (n.log or not n.drawn) for n in numbers) else "uniform",
    }
    return made.get_template("body").render(s=settings, version=importlib.metadata.version("gapless"), **more)


def _number(x: float) -> str:
    if not math.isfinite(x):
        raise BadInput(f"a fit with the number {x} in it cannot be exported")
    return f"{x:.6g}"


def _value(n: Number) -> str:
    """A value with a comma, and behind it its interval or why it has none."""
    said = [f"{n.low:.4g} to {n.high:.4g}"] * n.drawn + [n.remark] * bool(n.remark)
    return f"{_number(n.value)}," + (f"  # {_clean('; '.join(said))}" if said else "")


def _clean(text: str) -> str:
    """One printable line."""
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in " ".join(text.split()))
