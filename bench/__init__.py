"""What Gapless costs, measured beside a limit and beside its peers: `python -m bench.worlds`."""

import os

# Before numpy loads: waiting threads of a maths library that spin would be counted as ours.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
