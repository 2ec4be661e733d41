"""The text of a HIVM module as functions of nested operations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        name: with its dialect: ``memref.subview``.
        results: names of its results: ``%5``, or ``%5#0`` and ``%5#1`` where it has several.
        text: everything behind the equals sign, without the opening brace of a region.
        regions: its nested operations.
    """

    name: str
    results: list[str]
    text: str
    regions: list[list[Operation]] = field(default_factory=list)

    def matters(self) -> bool:
        """Whether it can decide a transfer: it computes integers, branches, or touches global memory."""
        if self.name.startswith("hivm."):
            of_global_memory = self.name == "hivm.hir.pointer_cast" and "address_space<gm>" in self.text
            return self.name.startswith("hivm.hir.get_") or of_global_memory
        if self.name.startswith("memref.") or self.name in ("func.call", "call", "annotation.mark"):
            return "address_space<gm>" in self.text
        return True


@dataclass(slots=True)
class Argument:
    """An argument of a kernel: its name, its type, and the runtime's role for it (``workspace`` …; empty for ours)."""

    name: str
    type: str
    role: str


@dataclass(slots=True)
class Function:
    """A function that runs on the device's cores."""

    name: str
    arguments: list[Argument]
    body: list[Operation]


_RESULT = re.compile(r"^(%\w+(?::\d+)?(?:, %\w+(?::\d+)?)*) = (.*)$")


def _results(text: str) -> list[str]:
    names = []
    for part in text.split(", "):
        name, _, count = part.partition(":")
        names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return names


def _parse_block(lines: list[str]) -> list[Operation]:
    """Nested operations of a function's lines; a line that ends in ``{`` opens a region."""
    body: list[Operation] = []
    # Regions side by side use names again: an operation that does not matter must still take its name from another's
    # that did.
    defined: set[str] = set()
    stack: list[tuple[Operation | None, list[Operation]]] = [(None, body)]
    for raw in lines:
        line = raw.strip()
        if not line:
            continue
        if line.startswith("}"):
            owner, _ = stack.pop()
            if owner is not None and re.match(r"\} (else|do) \{$", line):
                owner.regions.append([])
                stack.append((owner, owner.regions[-1]))
            continue
        found = _RESULT.match(line)
        names, text = (_results(found[1]), found[2]) if found else ([], line)
        opens = text.endswith("{")
        name = re.split(r"[ (\[{<]", text, maxsplit=1)[0]
        if name.startswith("^bb"):
            name = "block"
        operation = Operation(name, names, text.removesuffix("{").rstrip())
        if opens or operation.matters() or not defined.isdisjoint(names):
            stack[-1][1].append(operation)
            defined.update(names)
        if opens:
            operation.regions.append([])
            stack.append((operation, operation.regions[-1]))
    return body


def _parse_argument(text: str) -> Argument:
    name, _, rest = text.partition(":")
    role = re.search(r"hacc\.arg_type<(\w+)>", rest)
    return Argument(name.strip(), rest.split(" {")[0].strip(), role[1] if role else "")


def parse_functions(text: str) -> list[Function]:
    """The functions of a module that run on the device; declarations and host functions are left out."""
    functions = []
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        head = lines[index]
        found = re.match(r"^( *)func\.func @(\w+)\((.*)\)(?: -> [^{]*)? attributes \{(.*)\} \{$", head)
        if found is None:
            index += 1
            continue
        indent, name, arguments, attributes = found.groups()
        end = next(i for i in range(index + 1, len(lines)) if lines[i].startswith(indent + "}"))
        if "function_kind<HOST>" not in attributes:
            parts = [part for part in re.split(r", (?=%arg\d+:)", arguments) if part]
            functions.append(
                Function(name, [_parse_argument(part) for part in parts], _parse_block(lines[index + 1 : end]))
            )
        index = end + 1
    return functions
