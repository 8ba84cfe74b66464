"""Student (Lee et al. 2020): learns its teacher's actions and code of the world from a second of history, acting itself."""

from gapless.adapt.distil import Method

STUDENT = Method("student", frames=50, imitates=True)
