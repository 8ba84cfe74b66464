"""`python -m gapless` is the command `gapless`."""

from gapless.cli import main

main()
