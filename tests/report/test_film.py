"""A page with a film carries poses and viewer, and needs nothing else."""

import json
import re

import numpy as np

from gapless.report import Section, Verdict
from gapless.report.sections import write
from gapless.twin import Twin
from gapless.worlds import film


def test_the_page_carries_poses_and_viewer_and_hostile_labels_stay_text(tmp_path):
    twin = Twin.load("bench")
    made = film(twin, np.arange(0, 2, 0.04), {"measured": np.zeros((50, 1)), "</script><script>alert(1)": np.ones((50, 1))})
    write(tmp_path / "page.html", "t", Verdict("v", True), [Section("At a glance", film=made)])
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert(1)" not in page
    scene = json.loads(re.search(r'class="film".*?application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert [r["alpha"] for r in scene["robots"]] == [1.0, 0.5]
    assert "requestAnimationFrame(advance)" in page
    assert 'src="http' not in page
