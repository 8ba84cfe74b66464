"""UP-OSI (Yu et al. 2017): a universal policy sees parameters; online identification finds them in ten frames, in rounds.

What is identified are the parameters, which the policy encodes itself: the teacher is that of the others. In the first round
it is told the truth, afterwards what was identified.
"""

from gapless.adapt.distil import Method

OSI = Method("osi", frames=10, rounds=6, told=1)
