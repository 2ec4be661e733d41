"""`python -m ascend_integration upstream`."""

from typing import Annotated

import typer

from ascend_integration.upstream.record import as_record, results, write_record
from ascend_integration.upstream.report import PAGE, page, tables
from ascend_integration.upstream.selection import read_selection

app = typer.Typer(no_args_is_help=True, help="vLLM's own tests on the simulated NPU.")


@app.command()
def run(
    groups: Annotated[list[str] | None, typer.Argument(help="Groups of selection.toml; all by default.")] = None,
    again: Annotated[bool, typer.Option(help="Forget the groups' outcomes first.")] = False,
) -> None:
    """Run groups of vLLM's tests; what has an outcome is not run again."""
    from ascend_integration.upstream.runner import run_groups  # imports torch and transformers

    try:
        selection = read_selection()
        selected = selection.named(groups or [])
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    run_groups(selected, selection.adaptations, again)


@app.command()
def report() -> None:
    """Write record.json and the tables of the page from the outcomes that there are."""
    from ascend_integration.upstream.runner import outcomes_folder, read_lines

    selection, record = read_selection(), {}
    for group in selection.groups:
        if lines := read_lines(outcomes_folder() / f"{group.name}.jsonl"):
            record[group.name] = as_record(results(lines, selection))
    write_record(record)
    PAGE.write_text(page(PAGE.read_text(), record))
    typer.echo(tables(record))
