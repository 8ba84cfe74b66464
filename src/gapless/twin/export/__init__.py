"""Export: what a fit found as the actuator and randomisation settings that a training framework takes.

print(export("mjlab", *read("fitted")))
"""

from gapless.twin.export.settings import read
from gapless.twin.export.write import FRAMEWORKS, export
