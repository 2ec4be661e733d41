"""List the operator schemas inside a torch_npu wheel, which need not fit this environment's torch.

    tools/vendor_schemas.py torch_npu-2.10.0.post4-….whl > integration/sets/torch-npu-2.10.0.post4.schemas

The schemas are the strings with which the wheel's libraries register their operators. Only what the wheel declares in
the namespaces `npu` and `atb` under an `npu` name is kept: other strings of the same form are not all schemas.
"""

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

LIBRARIES = {"npu": "torch_npu/lib/libtorch_npu.so", "atb": "torch_npu/lib/libop_plugin_atb.so"}
SCHEMA = re.compile(rb"(?<=\0)_?npu_[a-z0-9_]+(?:\.[A-Za-z0-9_]+)?\([^\0]*\) ?-> ?[^\0]+(?=\0)")


def schemas(wheel: Path) -> Iterator[str]:
    """Yield `namespace::name.overload(arguments) -> results`."""
    with zipfile.ZipFile(wheel) as archive:
        for namespace, library in LIBRARIES.items():
            for match in SCHEMA.findall(archive.read(library)):
                declaration, _, results = match.decode("ascii").rpartition("->")
                yield f"{namespace}::{declaration.strip()} -> {results.strip()}"


def main(arguments: list[str]) -> None:
    """Print the sorted schemas of the wheel named on the command line."""
    if len(arguments) != 1 or not Path(arguments[0]).is_file():
        sys.exit("usage: tools/vendor_schemas.py WHEEL, a torch_npu wheel on disk")
    print("\n".join(sorted(set(schemas(Path(arguments[0]))))))


if __name__ == "__main__":
    main(sys.argv[1:])
