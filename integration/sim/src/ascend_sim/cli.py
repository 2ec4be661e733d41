"""Command line of the simulation."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ascend_sim import doctor as diagnosis
from ascend_sim.builder import BuildError
from ascend_sim.builder import build as make_build

app = typer.Typer(help="A simulated Ascend NPU under the real torch_npu.", no_args_is_help=True, add_completion=False)
_out = Console(soft_wrap=True)
_err = Console(stderr=True, soft_wrap=True)


@app.command()
def build(force: Annotated[bool, typer.Option(help="Build even if this build exists.")] = False) -> None:
    """Compile the simulated CANN for the installed torch and torch_npu into the user's cache."""
    try:
        make_build(force=force, report=lambda text: _out.print(text, markup=False, highlight=False))
    except BuildError as error:
        _err.print(f"error: {error}", markup=False, highlight=False)
        raise typer.Exit(1) from error


@app.command()
def doctor() -> None:
    """Say whether the simulation is active here, why not, and with which settings; exit 1 on a problem."""
    findings = diagnosis.examine()
    for finding in findings:
        mark = "[red]problem[/]" if finding.problem else "[green]ok[/]"
        _out.print(mark, end="  ")
        _out.print(finding.text, markup=False, highlight=False)
    if any(finding.problem for finding in findings):
        raise typer.Exit(1)


@app.command()
def ops(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with schemas and notes, instead of a table.")
    ] = False,
    used_in: Annotated[
        list[Path] | None, typer.Option(help="Only operators that Python files below these folders call.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Write the table of references into this Markdown file.")] = None,
) -> None:
    """List torch_npu's operators: schema, Meta kernel, reference, its source and grade."""
    from ascend_sim import ops_table  # imports torch, which cannot be imported before the build exists

    ops_table.main(as_json=as_json, used_only=bool(used_in), sources=used_in or (), page=page)


@app.command()
def limits(
    op: Annotated[str | None, typer.Argument(help="Name of an operator, without namespace and overload.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write all of them into this Markdown file.")] = None,
) -> None:
    """Show what the hardware refuses, for one operator or all: dtypes, shapes, layouts, SoCs, each with its source."""
    import torch  # noqa: F401  whose import brings the simulation

    from ascend_sim import limits_page

    try:
        limits_page.main(op, page)
    except ValueError as error:
        _err.print(f"error: {error}", markup=False, highlight=False)
        raise typer.Exit(1) from error
