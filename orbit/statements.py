"""Rendering what an agent reads: the statement of a task, and the prompt block of a framework.

Statements and blocks are data; this module only joins and fills them. A name that a template uses and nobody provides
is an error, never an empty string.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbit._names import unknown_name
from orbit.errors import DataError

if TYPE_CHECKING:
    from jinja2 import Environment

    from orbit.frameworks import Framework
    from orbit.tasks import Task


def render_statement(task: Task, contract: str) -> str:
    """The physics part of a task, then the rules shared by its suite, filled in for a contract.

    Raises:
        DataError: a part is missing or uses an unknown name.
        UsageError: the task is not judged under that contract.
    """
    from orbit.tasks import SHARED_STATEMENT

    if contract not in task.contracts:
        raise unknown_name(f"contract of {task.name}", contract, list(task.contracts))
    try:
        physics = task.instruction_path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{task.instruction_path}: cannot be read ({error.strerror}); write the statement") from error
    shared = render_template(task.directory.parent, SHARED_STATEMENT, task=task, contract=str(contract))
    return f"{physics.strip()}\n\n{shared.strip()}\n"


def render_prompt(framework: Framework, task: Task, variant: str | None = None) -> str:
    """The framework's block of an instruction, and the variant's block after it.

    Raises:
        DataError: a template is missing or uses an unknown name.
        UsageError: the framework has no such variant.
    """
    root = framework.directory.parent
    names = [framework.prompt_path.relative_to(root)]
    if variant is not None:
        names.append(framework.variant_path(variant).relative_to(root))
    blocks = [render_template(root, name.as_posix(), task=task, framework=framework) for name in names]
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def render_template(root: Path, name: str, *, task: Task, **values: Any) -> str:
    """Fill a template with a task's limits and further values.

    Raises:
        DataError: it is missing, is no template, or uses a name that nobody provides.
    """
    from jinja2 import TemplateError

    values |= {
        "limits": task.limits,
        "max_lines": task.max_lines,
        "recommended_runtime_sec": task.recommended_runtime_sec,
    }
    try:
        return _environment(root).get_template(name).render(**values)
    except TemplateError as error:
        raise DataError(
            f"{root / name}: cannot be rendered ({type(error).__name__}: {error}); correct the template"
        ) from error


def _environment(root: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(root),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the output is Markdown, and the templates are ours
    )
