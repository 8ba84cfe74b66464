"""UP-OSI (Yu et al. 2017): a universal policy sees parameters; online identification finds them in ten frames, in rounds.

In the first round the policy is told the truth, afterwards what was identified; every round learns from all rounds so far.
"""

from gapless.adapt.distil import Method

OSI = Method("osi", frames=10, rounds=6, keeps=True, told=1, epochs=10)
