"""Whether two halves of a real log, fitted apart, agree within their intervals.

    python -m bench.halves [--json] [--only go2,xl330] [--kept out/halves]

Each log is cut in the middle; one fit gets all first halves, the other all second ones. Of the numbers that both call
identified, 10 % should differ by more than 1.645 of their joint standard deviations; at most 15 % may (1 in 7 of few numbers is
chance). Finished fits are kept in a folder, by the state of the code, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import gapless
from bench.data import DATA
from gapless.identify import Comparison, Fit, compare, fit_admitted
from gapless.logs import Log, read
from gapless.twin import Friction, Twin, as_given

MOST = 0.15  # share of the numbers that may differ


def go2() -> tuple[Twin, list[Log]]:
    log = read(DATA / "go2_inair/go2_inair.npz", mapping="go2_inair")
    return as_given(DATA / "go2_inair/model/go2_fixed_base.xml", log), [log]


def xl330() -> tuple[Twin, list[Log]]:
    logs = [read(f, mapping="xl330") for f in sorted((DATA / "xl330/logs").glob("kp*"))]
    return as_given(DATA / "xl330/model/xl330_bench.xml", logs[0]), logs


def so101() -> tuple[Twin, list[Log]]:
    motions = sorted((DATA / "so101/motions").iterdir())
    twin = Twin.load(DATA / "so101/model/so101.xml", add=[Friction(full=True)])
    return twin, [read(m, mapping="so101") for m in motions]


def z1() -> tuple[Twin, list[Log]]:
    log = read(DATA / "z1/traj_0.pt", mapping="z1")
    return as_given(DATA / "z1/model/z1.xml", log), [log]


ROBOTS: dict[str, Callable[[], tuple[Twin, list[Log]]]] = {"go2": go2, "xl330": xl330, "so101": so101, "z1": z1}


def half(logs: list[Log], second: bool) -> list[Log]:
    """The first or second half in time of each log."""
    middles = [(log.start + log.end) / 2 for log in logs]
    return [log.slice(m, log.end) if second else log.slice(log.start, m) for log, m in zip(logs, middles, strict=True)]


def code() -> str:
    """Of the program's sources, in short: what other code found does not count."""
    sources = sorted(Path(gapless.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()[:12]


def compared(name: str, kept: Path) -> Comparison:
    """The fits of both halves of a robot's logs, side by side."""
    fits = []
    for second in (False, True):
        folder = kept / f"{name}_{'second' if second else 'first'}"
        if not folder.exists():
            twin, logs = ROBOTS[name]()
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            fit_admitted(twin, half(logs, second), print).save(part)
            part.rename(folder)
        fits.append(Fit.load(folder))
    return compare(*fits)


def figures(found: Comparison) -> dict[str, tuple[int, int]]:
    """Of each quantity how many numbers differ, of how many that both halves determine."""
    known = [c for c in found.parameters.values() if c.identified]
    of = {q: [c.moved for c in known if c.quantity == q] for q in sorted({c.quantity for c in known})}
    return {q: (sum(moved), len(moved)) for q, moved in of.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON line, last")
    parser.add_argument("--only", default=",".join(ROBOTS), help="which data sets, by comma")
    parser.add_argument("--kept", type=Path, default=Path("out/halves"), help="folder of finished fits")
    options = parser.parse_args()
    result: dict[str, dict[str, tuple[int, int]]] = {}
    for name in options.only.split(","):
        found = compared(name, options.kept / code())
        for number, c in found.parameters.items():
            if c.identified:
                print(f"  {number:44} {c.a.value:9.4g} {c.b.value:9.4g} {c.unit:9} {c.difference:+6.2f} sd{' *' * c.moved}")
        result[name] = figures(found)
    shares = {}
    for name in [*result, "all"]:
        own = [n for each, of in result.items() if name in (each, "all") for n in of.values()]
        moved, known = (sum(n[i] for n in own) for i in (0, 1))
        shares[name] = moved / max(known, 1)
        print(
            f"{name:8} {moved} of {known} differ, {100 * shares[name]:.0f} % (at most {100 * MOST:.0f} %)", result.get(name, "")
        )
    if options.json:
        print(json.dumps({"share": shares, "moved": result}))


if __name__ == "__main__":
    main()
