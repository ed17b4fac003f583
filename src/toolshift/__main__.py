"""`python -m toolshift`."""

from toolshift.cli import main

main()
