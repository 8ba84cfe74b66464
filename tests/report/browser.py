"""A real browser without a window, for what only a browser can tell."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: what pages look like is NOT tested")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=640,480",
)


def browse(url: str, profile: Path, *flags: str, timeout: float = 120) -> str:
    """Load a page and return what the browser prints."""
    argv = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *flags, url]
    started = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        return started.communicate(timeout=timeout)[0]
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
