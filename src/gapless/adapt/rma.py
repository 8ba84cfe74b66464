"""RMA (Kumar et al. 2021): the policy stays; its code of the world is estimated from a second of history of its own runs."""

from gapless.adapt.distil import Method

RMA = Method("rma", frames=50)
