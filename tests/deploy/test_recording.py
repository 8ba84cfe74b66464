"""Recording: rings that are there before the run."""

from gapless.deploy.realtime import resident
from gapless.deploy.recording import RING, Channel


def test_a_ring_takes_no_more_memory_while_it_fills():
    channel = Channel(1, "/policy", {"observation": [str(i) for i in range(500)]})
    before = resident()
    for _ in range(RING):
        channel.row()[:] = 1.0
        channel.done()
    assert resident() - before < 0.1 * channel.rows.nbytes
