"""How well fits predict real motion that they have not seen, on the frozen splits of the public data.

    python -m bench.identify [--json]

Each figure is in degrees, free-running in the full model, beside the command as prediction and the model as published.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from gapless.identify import fit
from gapless.logs import read
from gapless.twin import Twin
from gapless.twin.mechanisms import Friction, Gains
from gapless.twin.space import Array
from gapless.worlds import replay

DATA = Path(os.environ.get("GAPLESS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def go2() -> dict[str, float]:
    """Fitted to even blocks of 2 s, judged on odd ones; root mean square over all samples and joints."""
    twin = Twin.load(
        DATA / "go2_inair/model/go2_fixed_base.xml", add=[Gains(kp={"*": 20.0}, kd={"*": 1.5}), Friction(full=True)]
    )
    log = read(DATA / "go2_inair/go2_inair.npz", mapping="go2_inair")
    found = fit(twin, [log], print)
    result = replay(twin, log, np.stack([twin.space.nominal, found.half]))
    odd = (result.time[0] // 2).astype(int) % 2 == 1
    errors = [(result.command - result.measured["q"])[0], *result.error("q")[:, 0]]
    command, nominal, fitted = (float(np.degrees(np.sqrt((e[odd] ** 2).mean()))) for e in errors)
    return {"go2_command": command, "go2_published": nominal, "go2": fitted, "go2_s": found.seconds}


def so101() -> dict[str, float]:
    """Fitted to the training motions, judged on 60 s of the validation motions; by joint, then mean of the five arm joints."""
    split = json.loads((DATA / "so101/split.json").read_text())
    twin = Twin.load(DATA / "so101/model/so101.xml", add=[Friction(full=True)])
    found = fit(twin, [read(DATA / "so101/motions" / m, mapping="so101") for m in split["train"]], print)
    errors: list[list[Array]] = [[], []]
    for motion in split["validation"]:
        result = replay(twin, read(DATA / "so101/motions" / motion, mapping="so101"), found.values, end=60.0)
        errors[0].append((result.command - result.measured["q"])[0])
        errors[1].append(result.error("q")[0, 0])
    command, fitted = (float(np.degrees(np.sqrt((np.concatenate(e) ** 2).mean(axis=0)))[:5].mean()) for e in errors)
    return {"so101_command": command, "so101": fitted, "so101_s": found.seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    options = parser.parse_args()
    result = go2() | so101()
    for name, value in result.items():
        print(f"{name:16} {value:.3f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
