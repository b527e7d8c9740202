import subprocess

import pytest

from orbit.errors import SetupError
from orbit.images import check_image
from tests.unit.execution.conftest import data

__all__ = ["data", "engine"]


@pytest.fixture(scope="session")
def engine():
    """Asks the container engine; skips where there is none or the image is not built, which fails in CI."""
    try:
        check_image("tensorcircuit")
    except SetupError as error:
        pytest.skip(str(error))

    def ask(*arguments):
        return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True, timeout=60).stdout

    return ask
