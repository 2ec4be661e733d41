"""The command ``vllm-ascend``. It imports neither torch nor vLLM, so it works where those cannot be imported."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Tools around vLLM on Ascend NPUs.", add_completion=False)


@app.callback()
def main() -> None:
    """Tools around vLLM on Ascend NPUs."""


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Show what is installed, what does not fit together and how to mend it; exit 1 if something does not."""
    from vllm_ascend.doctor import examine
    from vllm_ascend.doctor.render import print_report

    report = examine()
    if as_json:
        typer.echo(report.to_json())
    else:
        print_report(report)
    raise typer.Exit(0 if report.ok else 1)
