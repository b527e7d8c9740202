"""Errors that a user can act on.

Each carries one line: the file or value at fault and the fix. Everything else keeps its traceback, because it is a
defect of ours.
"""


class OrbitError(Exception):
    """Something the user can fix; the command line shows its text as one line and exits with 2."""


class UsageError(OrbitError):
    """A wrong argument: an unknown task, framework, contract or option value."""


class DataError(OrbitError):
    """A file of tasks, frameworks or records that does not say what it must."""


class SetupError(OrbitError):
    """Something the machine lacks: an interpreter, an environment, a container engine."""


class HarnessError(Exception):
    """The harness, not the candidate, failed; becomes an `error` outcome and is never counted against anybody."""
