"""Command line of the integration package."""

from typing import Annotated

import typer
from rich.console import Console

from ascend_integration.checkpoints import CheckpointError, smollm2_checkpoint
from ascend_integration.demo.command import DEFAULT_QUESTION, DEFAULT_SYSTEM, DemoOptions, run_demo
from ascend_integration.upstream.command import app as upstream

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Demo and checkpoints of vllm-ascend.")
app.add_typer(upstream, name="upstream")


@app.command()
def demo(
    question: Annotated[str, typer.Option(help="What to ask the model.")] = DEFAULT_QUESTION,
    system: Annotated[str, typer.Option(help="System message of the chat.")] = DEFAULT_SYSTEM,
    model: Annotated[
        str | None, typer.Option(help="Checkpoint folder or Hugging Face name; SmolLM2-135M-Instruct by default.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")] = 64,
    start_timeout: Annotated[float, typer.Option(min=1, help="Seconds the server may take to start.")] = 600,
    serve_arguments: Annotated[
        list[str] | None, typer.Argument(help="Further arguments of `vllm serve`, after `--`.")
    ] = None,
) -> None:
    """Serve a model with `vllm serve` on the NPU and stream one chat answer; non-zero exit if anything is wrong."""
    options = DemoOptions(question, system, model, max_tokens, start_timeout, tuple(serve_arguments or ()))
    raise typer.Exit(run_demo(options, Console(highlight=False)))


@app.command()
def checkpoint() -> None:
    """Convert SmolLM2-135M-Instruct if need be and print its folder."""
    try:
        folder = smollm2_checkpoint()
    except CheckpointError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(str(folder))
