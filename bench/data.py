"""Where the real logs are."""

import os
from pathlib import Path

DATA = Path(os.environ.get("GAPLESS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
