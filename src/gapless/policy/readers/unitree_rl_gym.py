"""unitree_rl_gym: a YAML beside a TorchScript network; what goes in stands only in the authors' deployment scripts."""

import re

from gapless.checks import listed
from gapless.policy.readers.draft import FRAMEWORK, INFERRED, Draft
from gapless.policy.readers.files import PolicyFiles, Yaml
from gapless.policy.readers.motors import joints_of_motors
from gapless.policy.readers.terms import COMMANDS, term

PERIOD = 0.8
"""Of the gait clock in its deployment scripts [s]."""
LEG = re.compile("hip|thigh|calf|knee|ankle|foot", re.IGNORECASE)
"""In the name of a leg's joint."""


def can_read(files: PolicyFiles) -> bool:
    return files.yaml_with("kps", "default_angles") is not None


def read(files: PolicyFiles, joints: tuple[str, ...]) -> Draft:
    """Gains, scales and periods from the yaml; the order of the observation from the framework's scripts, if the width fits."""
    yaml = files.yaml_with("kps", "default_angles")
    assert yaml is not None
    table, draft = yaml.table, Draft("unitree_rl_gym")
    for key, field in (("kps", "joints.kp"), ("kds", "joints.kd"), ("default_angles", "joints.default_pos")):
        draft.put(field, table.get(key), yaml.at(key))
    draft.put("action.scale", table.get("action_scale"), yaml.at("action_scale"))
    draft.put("timing.sim_dt", table.get("simulation_dt"), yaml.at("simulation_dt"))
    draft.put("timing.decimation", table.get("control_decimation"), yaml.at("control_decimation"))
    draft.put("timing.control_dt", table.get("control_dt"), yaml.at("control_dt"))
    dt, steps = table.get("simulation_dt"), table.get("control_decimation")
    if isinstance(dt, float) and isinstance(steps, int):
        draft.suppose("timing.control_dt", dt * steps, f"{yaml.at('control_decimation')} times simulation_dt", INFERRED)
    draft.suppose("action.offset", draft.get("joints.default_pos"), "targets are offsets from the default pose")
    count = len(listed(table["kps"], yaml.at("kps")))
    _name(draft, yaml, count, joints)
    width = table.get("num_obs") or files.network.width
    scripts = "deploy_mujoco.py and deploy_real.py of unitree_rl_gym"
    if width == 11 + 3 * count:
        terms = [
            term("omega", count, table.get("ang_vel_scale", 1.0)),
            term("gravity_orientation", count),
            term("cmd", count, table.get("cmd_scale", 1.0)),
            term("qj", count, table.get("dof_pos_scale", 1.0)),
            term("dqj", count, table.get("dof_vel_scale", 1.0)),
            term("action", count),
            term("phase", count, frequency=1 / PERIOD),
        ]
        draft.put("observation.terms", terms, scripts, FRAMEWORK)
        draft.put("commands", dict.fromkeys(COMMANDS), scripts, FRAMEWORK)
    else:
        draft.notes.append(f"{width} numbers are not those of its walking robots, {11 + 3 * count}: state observation.terms")
    most = table.get("max_cmd")
    if isinstance(most, list) and len(most) == len(COMMANDS) and all(isinstance(m, int | float) and m >= 0 for m in most):
        ranges = {name: [-float(m), float(m)] for name, m in zip(COMMANDS, most, strict=True)}
        draft.put("commands", ranges, yaml.at("max_cmd"))
    return draft


def _name(draft: Draft, yaml: Yaml, count: int, joints: tuple[str, ...]) -> None:
    """Joints by motor number where the yaml has one, all where there are as many, else the legs that the model has."""
    motors = yaml.table.get("leg_joint2motor_idx")
    legs = [j for j in joints if LEG.search(j)]
    if isinstance(motors, list) and all(isinstance(i, int) for i in motors) and (found := joints_of_motors(motors, joints)):
        draft.put("joints.names", found[0], f"{yaml.at('leg_joint2motor_idx')} {found[1]}", INFERRED)
    elif len(joints) == count:
        draft.put("joints.names", list(joints), "as many as the model's actuators, in whose order they are taken", INFERRED)
    elif len(legs) == count:
        draft.put("joints.names", legs, "as many as the joints of the model's legs, in whose order they are taken", INFERRED)
    elif joints:
        draft.notes.append(f"the policy drives {count} joints and the model has {len(joints)}: state joints.names")
