"""How quickly logs are read: SO-101 motions, and an hour of MCAP against the bare `mcap` reader, in one run."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.data import DATA
from gapless.logs import Log, find, read, write

JOINTS = tuple(f"joint{i}" for i in range(12))


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def so101() -> dict[str, float]:
    """Reading of all public motions, best of two."""
    motions = find(DATA / "so101" / "motions")
    robot = sum(read(m, "so101").duration for m in motions)
    return {
        "so101_read_s": min(seconds(lambda: [read(m, "so101") for m in motions]) for _ in range(2)),
        "so101_robot_s": robot,
    }


def recording(minutes: float, rate: float) -> Log:
    """Joints that sway with sensor noise, in full double precision: nothing that compresses or parses easily."""
    rng = np.random.default_rng(0)
    n = int(minutes * 60 * rate)
    phase = np.arange(n)[:, None] / rate + np.arange(12)
    q = np.sin(phase) + 1e-3 * rng.standard_normal((n, 12))
    signals = {"q_cmd": np.sin(phase + 0.02), "q": q, "dq": np.cos(phase) + 1e-2 * rng.standard_normal((n, 12))}
    return Log.from_arrays(JOINTS, np.arange(n) / rate, signals)


def bare(path: Path) -> None:
    from mcap.reader import make_reader

    with path.open("rb") as file:
        for _ in make_reader(file).iter_messages():
            pass


def peak_memory(path: Path) -> int:
    """Bytes that reading adds to a fresh process at its peak."""
    code = (
        "import sys, gapless.logs as l, pyarrow.json, zstandard, gapless.logs.formats\n"
        "peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) * 1024\n"
        "before = peak(); log = l.read(sys.argv[1]); print(peak() - before)"
    )
    return int(subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout)


def mcap(minutes: float) -> dict[str, float]:
    """An hour at 1 kHz of 12 joints, read in turn with the bare reader and with ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hour.mcap"
        log = recording(minutes, 1000.0)
        held = sum(s.values.nbytes for s in log.signals.values()) + log["q"].time.nbytes
        start = time.perf_counter()
        write(log, path)
        written = time.perf_counter() - start
        del log
        pairs = [(seconds(lambda: bare(path)), seconds(lambda: read(path)))]
        return {
            "mcap_minutes": minutes,
            "mcap_file_bytes": path.stat().st_size,
            "mcap_signal_bytes": held,
            "mcap_write_s": written,
            "mcap_bare_s": min(b for b, _ in pairs),
            "mcap_read_s": min(r for _, r in pairs),
            "mcap_speed_over_bare": min(b for b, _ in pairs) / min(r for _, r in pairs),
            "mcap_memory_over_signals": peak_memory(path) / held,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the MCAP recording")
    parser.add_argument("--json", action="store_true", help="print one line of JSON last")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    if DATA.is_dir():
        figures |= so101()
        print(f"SO-101: {figures['so101_robot_s'] / 60:.0f} min of robot time read in {figures['so101_read_s']:.2f} s")
    else:
        print(f"SO-101: left out, there is no {DATA}; set GAPLESS_DATA")
    figures |= mcap(options.minutes)
    print(
        f"MCAP: {options.minutes:g} min at 1 kHz read in {figures['mcap_read_s']:.1f} s, bare reader "
        f"{figures['mcap_bare_s']:.1f} s: {figures['mcap_speed_over_bare']:.2f} of its speed (limit 0.5); "
        f"memory {figures['mcap_memory_over_signals']:.2f} of the signals (limit 3)"
    )
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
