"""Where the real logs are."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("GAPLESS_DATA", Path(__file__).parents[2] / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real logs at {DATA}: set GAPLESS_DATA")
