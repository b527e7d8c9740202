"""Leaves with status 0 while it is imported, after printing success."""

import sys

print("PASS")
sys.exit(0)
