"""`python -m orbit.cli`, for environments without the console script."""

from orbit.cli import main

main()
