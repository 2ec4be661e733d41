"""``python -m vllm_ascend.patch``: the table of patched names; fails above the limit or if a target changed."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from vllm_ascend.patch.apply import check, load_stage
from vllm_ascend.patch.errors import PatchError
from vllm_ascend.patch.fingerprint import digest_of, signature_of

LIMIT = 20
"""Most names that may be patched; it may only fall."""


def main(
    digest: Annotated[
        str | None,
        typer.Option(metavar="TARGET", help="print digest and signature of a target"),
    ] = None,
) -> None:
    """Print every patched name with its reason, check the targets, and count."""
    console = Console()
    if digest is not None:
        console.print(
            f"digest={digest_of(digest)!r}\nsignature={signature_of(digest)!r}",
            highlight=False,
        )
        return
    table = Table("name", "stage", "scope", "target", "reason", title="patched names")
    count, broken = 0, []
    for stage in ("platform", "worker"):
        for it in load_stage(stage):
            state = "as declared"
            try:
                check(it)
            except PatchError as error:
                state = "changed"
                broken.append(str(error))
            for name in it.names:
                count += 1
                table.add_row(name, it.stage, it.scope or "lasting", state, it.reason)
    console.print(table)
    console.print(f"{count} patched names (limit {LIMIT})", highlight=False)
    for message in broken:
        console.print(message, style="red", highlight=False)
    if broken or count > LIMIT:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
