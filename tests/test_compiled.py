"""Processes that compile one function for different types at once do not run each other's code."""

import subprocess
import sys
from pathlib import Path

SOURCE = """
from gapless.compiled import compiled

@compiled
def total(values):
    result = values[0]
    for value in values[1:]:
        result += value
    return result
"""

COMPILE = """
import sys, time
import numpy as np
from numba.core.caching import IndexDataCacheFile

for step in ("_save_index", "_save_data"):  # slow, so that both processes are at it at the same time
    def slow(self, *file, save=getattr(IndexDataCacheFile, step)):
        time.sleep(1)
        save(self, *file)
    setattr(IndexDataCacheFile, step, slow)
import summed
print(summed.total(np.arange(4, dtype=sys.argv[1])))
"""


def test_two_processes_that_compile_two_types_at_once_keep_both_apart(tmp_path: Path) -> None:
    (tmp_path / "summed.py").write_text(SOURCE)

    def start(kind: str) -> "subprocess.Popen[str]":
        return subprocess.Popen([sys.executable, "-c", COMPILE, kind], cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    for _ in range(2):  # compiled side by side, then read from disk
        processes = [start("float64"), start("int64")]
        assert [process.communicate(timeout=120)[0].strip() for process in processes] == ["6.0", "6"]
        assert len(list((tmp_path / "__pycache__").glob("summed.total-*.nbc"))) == 2
