"""The report as a table for people."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vllm_ascend.doctor.report import Report, Status

_STYLES = {Status.OK: "green", Status.NOTE: "yellow", Status.PROBLEM: "bold red"}


def print_report(report: Report) -> None:
    """Print every finding, then the problems with how to mend them."""
    console = Console()
    table = Table("", "status")
    table.add_column("found", overflow="fold")
    for it in report.findings:
        text = escape(it.value)
        if it.detail and it.status is not Status.PROBLEM:
            text += f"\n[dim]{escape(it.detail)}[/dim]"
        table.add_row(it.subject, f"[{_STYLES[it.status]}]{it.status}[/]", text)
    console.print(table)
    problems = [it for it in report.findings if it.status is Status.PROBLEM]
    for it in problems:
        console.print(f"[bold red]{escape(it.subject)}[/]: {escape(it.value)}", highlight=False)
        console.print(f"  why:  {escape(it.detail)}\n  mend: {escape(it.mend)}", highlight=False)
    console.print("Nothing to mend." if not problems else f"{len(problems)} problem(s).", highlight=False)
