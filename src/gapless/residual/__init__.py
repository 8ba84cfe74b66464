"""Residual: what no parameter explains, learned from logs, bounded, and kept only where it predicts what it has not seen.

`learn` adds the rung "+ learned residual" to a fit: a small network per joint, trained without torque labels through the
simulation of single joints along the twin's own loads (`own_run.py`), by an adjoint that is written by hand (`adjoint.py`).
`learn_delta` learns a correction of a policy's actions by the same. `learn_actuator` learns measured torque from the command
and the velocity, beside simpler laws of the same; `in_model` puts these networks in the place of a twin's drives.
"""

from gapless.residual.actuator import Actuator, learn_actuator
from gapless.residual.base import LearntBase
from gapless.residual.delta import DeltaAction, learn_delta
from gapless.residual.driven import in_model, must_be_torque
from gapless.residual.files import load_drives, load_nets, save_nets
from gapless.residual.result import Learnt
from gapless.residual.rung import learn, must_suit
