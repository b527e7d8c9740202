"""The command line: parses, calls one library function, renders.

Exit codes: 0 fine, 1 a measured failure (an invalid artifact, a failed check), 2 usage, set-up or harness,
130 interrupted.
Nothing heavy is imported until a command runs, so `orbit --help` stays instant.
"""

from __future__ import annotations

import sys
import traceback

from orbit.cli import _shell
from orbit.errors import HarnessError, OrbitError


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Args:
        arguments: what follows `orbit`; taken from the process when None.

    Raises:
        SystemExit: always.
    """
    from orbit.cli._app import app

    _shell.set_debug(False)
    try:
        app(arguments, prog_name="orbit")
    except OrbitError as error:
        _leave(str(error))
    except HarnessError as error:
        _leave(f"the harness failed, not the artifact (--debug shows where): {error}")
    except KeyboardInterrupt:
        sys.exit(_shell.INTERRUPTED)
    except Exception:  # noqa: BLE001 - the boundary of the process: a defect of ours keeps its traceback and is no "measured failure"
        traceback.print_exc()
        sys.exit(_shell.USAGE)


def _leave(text: str) -> None:
    if _shell.debug_enabled():
        traceback.print_exc()
    print(f"orbit: {' '.join(text.splitlines()[:1]) or 'failed'}", file=sys.stderr)
    sys.exit(_shell.USAGE)
