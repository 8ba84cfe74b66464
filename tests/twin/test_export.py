"""Exports: Python that runs against the frameworks' own signatures, with the numbers of the fit in the right places.

The frameworks are not installed here. What stands in for them has the fields and arguments of the versions that exports name
(mjlab 1.6.0, Isaac Lab 2.3.2, playground 0.2.0); anything else is refused.
"""

import ast
import json
import sys
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from types import ModuleType, SimpleNamespace

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.twin import Friction, Gaussian, Twin, export_settings, read_settings as read, save_belief as save
from gapless.twin.export import FRAMEWORKS

CLOSE = {"rel": 1e-5}  # six digits are printed
mjlab, isaaclab, playground = (partial(export_settings, name) for name in ("mjlab", "isaaclab", "playground"))


def fitted(folder, twin: Twin, change: dict[str, float], spread: float | dict[str, float] = 0.1, **more) -> dict:
    """A folder as `gapless fit` makes it, without fitting; returns its parameters."""
    space = twin.space.select(*change)
    spreads = np.array([spread[n] if isinstance(spread, dict) else spread for n in space.names])
    values = space.values(change)
    belief = Gaussian(space, space.to_scaled(values), np.diag(spreads**2))
    low, high = (space.clip(space.from_scaled(belief.centre + s * 1.645 * spreads)) for s in (-1, 1))
    parameters = {
        n: {"value": values[i], "low": low[i], "high": high[i], "identified": bool(spreads[i] < 1), "at_bound": False}
        for i, n in enumerate(space.names)
    }
    folder.mkdir(exist_ok=True)
    twin.save(folder / "twin.xml", values[None], space)
    save(belief, folder / "belief.json")
    (folder / "fit.json").write_text(json.dumps({"robot": twin.name, "parameters": parameters, "logs": ["a.npz"], **more}))
    return parameters


def arm(folder, **more) -> tuple[Twin, dict]:
    twin = Twin.load("arm", add=[Friction(full=True)])
    change = {"latency.action": 0.0093}
    for i, joint in enumerate(twin.joints):
        change |= {
            f"gains.kp/{joint}": 11.0 + i,
            f"gains.kd/{joint}": 0.3 + 0.01 * i,
            f"armature.inertia/{joint}": 0.01 + 0.001 * i,
        }
        change |= {f"friction.coulomb/{joint}": 0.2 + 0.01 * i, f"friction.viscous/{joint}": 0.1 + 0.01 * i}
        change |= {f"friction.stribeck/{joint}": 0.05}
    spread = dict.fromkeys(change, 0.1) | {f"gains.kd/{joint}": 2.0 for joint in twin.joints}
    return twin, fitted(folder, twin, change, spread, **more)


def modules(monkeypatch, **contents) -> None:
    for name, things in contents.items():
        path = name.replace("__", ".")
        module = ModuleType(path)
        vars(module).update(things)
        monkeypatch.setitem(sys.modules, path, module)


def run(text: str) -> dict:
    made: dict = {}
    exec(compile(ast.parse(text), "export", "exec"), made)
    return made


@dataclass
class Entity:
    name: str
    joint_names: list | tuple | None = None
    actuator_names: list | tuple | None = None
    body_names: list | tuple | None = None


@dataclass
class Event:
    func: object
    mode: str
    params: dict = field(default_factory=dict)

    def __post_init__(self):
        self.func(None, None, **self.params)  # its arguments are right


def dr_field(env, env_ids, ranges, asset_cfg=None, distribution="uniform", operation="abs", axes=None, shared_random=False): ...
def pd_gains(env, env_ids, kp_range, kd_range, asset_cfg=None, distribution="uniform", operation="scale"): ...


def run_mjlab(monkeypatch, text: str) -> dict:
    required = ["target_names_expr", "stiffness", "damping"]
    optional = ["effort_limit", "armature", "frictionloss", "viscous_damping", "velocity_limit", "transmission_type"]
    optional += ["delay_min_lag", "delay_max_lag", "delay_hold_prob", "delay_update_period", "delay_per_env_phase"]
    fields = [(n, object) for n in required] + [(n, object, field(default=None)) for n in optional]
    functions = {name: (lambda *a, **k: dr_field(*a, **k)) for name in ("joint_armature", "joint_friction", "joint_damping")}
    for name, function in functions.items():
        function.__name__ = name
    modules(
        monkeypatch,
        mjlab={},
        mjlab__actuator={"BuiltinPositionActuatorCfg": make_dataclass("BuiltinPositionActuatorCfg", fields, kw_only=True)},
        mjlab__envs={},
        mjlab__envs__mdp={"dr": SimpleNamespace(pd_gains=pd_gains, **functions)},
        mjlab__managers={},
        mjlab__managers__event_manager={"EventTermCfg": Event},
        mjlab__managers__scene_entity_config={"SceneEntityCfg": Entity},
    )
    return run(text)


def randomize_actuator_gains(
    env, env_ids, asset_cfg, stiffness_distribution_params=None, damping_distribution_params=None, operation="abs",
    distribution="uniform",
): ...  # fmt: skip
def randomize_joint_parameters(
    env, env_ids, asset_cfg, friction_distribution_params=None, armature_distribution_params=None,
    lower_limit_distribution_params=None, upper_limit_distribution_params=None, operation="abs", distribution="uniform",
): ...  # fmt: skip


def run_isaaclab(monkeypatch, text: str) -> dict:
    names = [
        "joint_names_expr",
        "effort_limit",
        "velocity_limit",
        "effort_limit_sim",
        "velocity_limit_sim",
        "stiffness",
        "damping",
    ]
    names += ["armature", "friction", "dynamic_friction", "viscous_friction", "min_delay", "max_delay"]
    fields = [(n, object, field(default=None)) for n in names]
    modules(
        monkeypatch,
        isaaclab={},
        isaaclab__actuators={"DelayedPDActuatorCfg": make_dataclass("DelayedPDActuatorCfg", fields, kw_only=True)},
        isaaclab__envs={
            "mdp": SimpleNamespace(
                randomize_actuator_gains=randomize_actuator_gains, randomize_joint_parameters=randomize_joint_parameters
            )
        },
        isaaclab__managers={"EventTermCfg": Event, "SceneEntityCfg": Entity},
    )
    return run(text)


class At(np.ndarray):
    """An array with jax's way of making a changed copy."""

    @property
    def at(self):
        outer = self

        class Place:
            def __getitem__(self, index):
                def set(values):
                    changed = outer.copy()
                    changed[index] = values
                    return changed

                return SimpleNamespace(set=set)

        return Place()


class Model:
    """What `domain_randomize` uses of an mjx.Model."""

    def __init__(self, model: mujoco.MjModel):
        self.model = model
        for name in ("actuator_gainprm", "actuator_biasprm", "dof_armature", "dof_frictionloss", "dof_damping"):
            setattr(self, name, getattr(model, name).copy().view(At))
        self.jnt_dofadr, self.actuator_trnid = model.jnt_dofadr, model.actuator_trnid

    def tree_replace(self, fields):
        out = Model(self.model)
        vars(out).update(fields)
        return out


def run_playground(monkeypatch, text: str) -> dict:
    def uniform(key, shape, minval, maxval):
        return np.random.default_rng(int(key)).uniform(minval, maxval, shape)

    def vmap(function):
        def each(keys):
            rows = [function(k) for k in keys]
            return {name: np.stack([r[name] for r in rows]) for name in rows[0]}

        return each

    def tree_map(function, model):
        return model.tree_replace({name: None for name in vars(model) if name != "model"})

    random = SimpleNamespace(uniform=uniform, split=lambda key, n: [10 * int(key) + i for i in range(n)])
    jax = {"Array": object, "random": random, "vmap": vmap, "tree_util": SimpleNamespace(tree_map=tree_map), "numpy": np}
    modules(monkeypatch, jax=jax, jax__numpy=vars(np))
    mjx = {"Model": Model, "name2id": lambda m, kind, name: mujoco.mj_name2id(m.model, kind, name)}
    modules(monkeypatch, mujoco__mjx=mjx)
    monkeypatch.setattr(mujoco, "mjx", sys.modules["mujoco.mjx"], raising=False)
    return run(text)


def test_mjlab_takes_the_values_and_draws_within_the_intervals(tmp_path, monkeypatch):
    twin, p = arm(tmp_path)
    made = run_mjlab(monkeypatch, mjlab(*read(tmp_path)))
    assert [a.target_names_expr for a in made["ACTUATORS"]] == [(j,) for j in twin.joints]
    step = twin.model.opt.timestep
    low, high = p["latency.action"]["low"], p["latency.action"]["high"]
    assert made["PHYSICS_DT"] == pytest.approx(step)
    for a, joint in zip(made["ACTUATORS"], twin.joints, strict=True):
        for name, value in (
            ("gains.kp", a.stiffness),
            ("gains.kd", a.damping),
            ("armature.inertia", a.armature),
            ("friction.coulomb", a.frictionloss),
            ("friction.viscous", a.viscous_damping),
        ):
            assert value == pytest.approx(p[f"{name}/{joint}"]["value"], **CLOSE)
        assert a.delay_min_lag * step <= low < (a.delay_min_lag + 1) * step
        assert (a.delay_max_lag - 1) * step < high <= a.delay_max_lag * step
    events = made["EVENTS"]
    for i, joint in enumerate(twin.joints):
        params = events[f"gapless_gains_{i + 1}"].params
        assert params["asset_cfg"].actuator_names == (joint,)
        assert params["kp_range"] == pytest.approx((p[f"gains.kp/{joint}"]["low"], p[f"gains.kp/{joint}"]["high"]), **CLOSE)
        assert params["kd_range"] == pytest.approx((p[f"gains.kd/{joint}"]["value"],) * 2, **CLOSE)  # not determined
        assert params["operation"] == "abs"
    for event, name in (("armature", "armature.inertia"), ("dry", "friction.coulomb"), ("viscous", "friction.viscous")):
        assert events[f"gapless_{event}"].func.__name__ == {"dry": "joint_friction", "viscous": "joint_damping"}.get(
            event, "joint_armature"
        )
        for joint, ends in events[f"gapless_{event}"].params["ranges"].items():
            assert ends == pytest.approx((p[f"{name}/{joint}"]["low"], p[f"{name}/{joint}"]["high"]), **CLOSE)


def test_isaac_lab_takes_the_values_and_scales_within_the_intervals(tmp_path, monkeypatch):
    twin, p = arm(tmp_path)
    made = run_isaaclab(monkeypatch, isaaclab(*read(tmp_path)))
    drive = made["ACTUATORS"]["gapless"]
    assert drive.joint_names_expr == list(twin.joints)
    for joint in twin.joints:
        for name, value in (
            ("gains.kp", drive.stiffness[joint]),
            ("gains.kd", drive.damping[joint]),
            ("armature.inertia", drive.armature[joint]),
            ("friction.coulomb", drive.dynamic_friction[joint]),
            ("friction.viscous", drive.viscous_friction[joint]),
        ):
            assert value == pytest.approx(p[f"{name}/{joint}"]["value"], **CLOSE)
        at_rest = p[f"friction.coulomb/{joint}"]["value"] + p[f"friction.stribeck/{joint}"]["value"]
        assert drive.friction[joint] == pytest.approx(at_rest, **CLOSE)
    drawn = {(e.params["asset_cfg"].joint_names[0], k): v for e in made["EVENTS"].values() for k, v in e.params.items()}
    for joint in twin.joints:
        for key, name in (("stiffness", "gains.kp"), ("friction", "friction.coulomb"), ("armature", "armature.inertia")):
            entry = p[f"{name}/{joint}"]
            scale = (entry["low"] / entry["value"], entry["high"] / entry["value"])
            assert drawn[joint, f"{key}_distribution_params"] == pytest.approx(scale, **CLOSE)
        assert (joint, "damping_distribution_params") not in drawn  # not determined
    assert all(e.params["operation"] == "scale" for e in made["EVENTS"].values())


def test_playground_draws_the_drives_of_the_model_it_is_given(tmp_path, monkeypatch):
    twin, p = arm(tmp_path)
    made = run_playground(monkeypatch, playground(*read(tmp_path)))
    model, axes = made["domain_randomize"](Model(twin.model), np.arange(50))
    for d in twin.drives:
        for name, drawn in (
            ("gains.kp", model.actuator_gainprm[:, d.actuator, 0]),
            ("gains.kp", -model.actuator_biasprm[:, d.actuator, 1]),
            ("gains.kd", -model.actuator_biasprm[:, d.actuator, 2]),
            ("armature.inertia", model.dof_armature[:, d.dof]),
            ("friction.coulomb", model.dof_frictionloss[:, d.dof]),
            ("friction.viscous", model.dof_damping[:, d.dof]),
        ):
            entry = p[f"{name}/{d.name}"]
            known = name == "gains.kd"
            low, high = (entry["value"],) * 2 if known else (entry["low"], entry["high"])
            assert drawn.min() >= low * (1 - 1e-5)
            assert drawn.max() <= high * (1 + 1e-5)
            assert (np.ptp(drawn) == 0) == known
    assert axes.actuator_gainprm == 0
    assert axes.dof_damping == 0
    bench = Model(Twin.load("bench").model)
    with pytest.raises(ValueError, match="lacks joints"):
        made["domain_randomize"](bench, np.arange(2))


def test_friction_that_depends_on_the_angle_is_exported_where_the_joint_is(tmp_path, monkeypatch):
    twin = Twin.load("bench", add=[Friction(full=True)])
    joint, home = twin.joints[0], 0.0
    change = {f"friction.coulomb/{joint}": 0.1, f"friction.angle/{joint}": 0.05, f"friction.angle2/{joint}": 0.02}
    p = fitted(tmp_path, twin, change, 0.05, pose={joint: 1.5})
    made = run_mjlab(monkeypatch, mjlab(*read(tmp_path)))
    x = 1.5 - home
    expected = 0.1 + 0.05 * x + 0.02 * x**2
    assert made["ACTUATORS"][0].frictionloss == pytest.approx(expected, **CLOSE)
    # a sum of independent Gaussians, by hand
    half = {n: (v["high"] - v["low"]) / 2 for n, v in p.items()}
    together = np.sqrt(sum((half[n] * f) ** 2 for n, f in zip(change, (1, x, x**2), strict=True)))
    low, high = made["EVENTS"]["gapless_dry"].params["ranges"][joint]
    assert (high - low) / 2 == pytest.approx(together, rel=0.06)
    assert "depends on the angle" in mjlab(*read(tmp_path))


def test_tied_joints_and_a_weak_motor_are_told_apart(tmp_path, monkeypatch):
    twin = Twin.load("arm")
    joint = twin.joints[0]
    p = fitted(tmp_path, twin, {f"motor.strength/{joint}": 0.8, f"gains.kp/{joint}": 10.0})
    made = run_mjlab(monkeypatch, mjlab(*read(tmp_path)))
    assert made["ACTUATORS"][0].stiffness == pytest.approx(8.0, **CLOSE)
    low, high = p[f"gains.kp/{joint}"]["low"], p[f"gains.kp/{joint}"]["high"]
    assert made["EVENTS"]["gapless_gains_1"].params["kp_range"] == pytest.approx((0.8 * low, 0.8 * high), **CLOSE)


EVIL = """a'"\\
import os  # \u2028 {{ 7 * 7 }} .* é"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_text_is_python_whatever_the_names_are(framework, tmp_path):
    spec = mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1' mass='1'/></body></worldbody>"
        "<actuator><position joint='j' kp='10' kv='1'/></actuator></mujoco>"
    )
    spec.joints[0].name = EVIL
    spec.actuators[0].target = EVIL
    twin = Twin.build(spec, Twin.load("arm").mechanisms, 0.02)
    fitted(tmp_path, twin, {f"gains.kp/{EVIL}": 12.0}, robot_note=EVIL)
    model, belief, summary = read(tmp_path)
    text = export_settings(framework, model, belief, summary | {"robot": EVIL, "origin": {"logs": [EVIL]}, "against": [EVIL]})
    tree = ast.parse(text)
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert "os" not in imported
    assert "DO NOT USE THIS FIT" in text
    assert text.isascii()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_head_says_what_the_framework_cannot_express_and_which_version_is_meant(framework, tmp_path):
    arm(tmp_path, heldout={"command": 0.1, "delay": None, "given": 0.02, "fit": 0.002}, origin={"logs": ["one.npz"]})
    head = export_settings(framework, *read(tmp_path)).split("import math")[0]
    assert "Stribeck" in head
    assert "friction.stribeck (6 fitted)" in " ".join(head.replace("#", " ").split())
    assert {"mjlab": "1.6", "isaaclab": "2.3.2", "playground": "0.2.0"}[framework] in head
    assert "Logs: one.npz." in head
    assert "fitted 0.115, as given 1.15, command 5.73" in " ".join(head.replace("#", " ").split())


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    arm(tmp_path)
    model, belief, summary = read(tmp_path)
    name = next(iter(summary["parameters"]))
    with pytest.raises(BadInput, match="not of the same fit"):
        mjlab(model, belief, {"parameters": {k: v for k, v in summary["parameters"].items() if k != name}})
    kp = next(k for k in summary["parameters"] if k.startswith("gains.kp"))
    other = summary["parameters"] | {kp: summary["parameters"][kp] | {"value": 99.0}}
    with pytest.raises(BadInput, match="99 in fit.json"):
        mjlab(model, belief, {"parameters": other})
    with pytest.raises(BadInput, match="no position command"):
        mjlab(mujoco.MjModel.from_xml_string(MOTOR), belief, summary)


MOTOR = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="j"/></actuator></mujoco>"""
