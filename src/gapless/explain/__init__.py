"""Explain: which cause of the gap matters: named, shared out, and what to do next.

    from gapless.explain import diagnose
    print(diagnose(twin, logs))

Every mechanism of the twin competes, each at the size of a real mismatch while all else may move only within its tolerance.
"""

from gapless.explain.causes import explain
from gapless.explain.diagnosis import Diagnosis, diagnose, diagnose_admitted, read_losses
from gapless.explain.physics import errors_of, noise_of, observed
from gapless.explain.shares import shapley
