"""torchvision beside the CPU build of torch: its Python part, where its compiled extension cannot be loaded.

torch_npu works with the CPU build of torch, registries hold torchvision's CUDA build, whose extension does not load
beside it. `import torchvision` then ends at its first use of an operator that nobody has defined, although what models
need of it, the transforms, is Python over torch's own operators. Here the operators are declared by their schemas, so
that the import succeeds; calling one is an error that says why and what to install.
"""

import functools
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, "
    "int sampling_ratio, bool aligned) -> Tensor",
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)",
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "int sampling_ratio) -> (Tensor, Tensor)",
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) "
    "-> (Tensor, Tensor)",
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask) -> Tensor",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
)
"""Operators of torchvision's extension for inference, as its registration declares them."""


def _refuse(name: str, cause: str, *args: Any, **kwargs: Any) -> None:
    raise NotImplementedError(
        f"torchvision::{name} cannot run: torchvision's compiled extension does not load beside this torch ({cause}). "
        "Its transforms work without. For the operators install the torchvision of the CPU build from the index of "
        "PyTorch's CPU wheels, the one that this torch came from"
    )


def _why_not_loaded(folder: Path) -> str | None:
    """Why the extension in torchvision's `folder` cannot be loaded; None once it is."""
    import torch

    extension = next(folder.glob("_C*.so"), None)
    if extension is None:
        return f"there is none in {folder}"
    try:
        torch.ops.load_library(str(extension))
    except OSError as error:
        return str(error.__cause__ or error)
    return None


@functools.cache
def declare_operators(folder: Path) -> Any:
    """Declare the operators of the torchvision in `folder` unless its extension loads; returns what keeps them."""
    import torch

    cause = _why_not_loaded(folder)
    if cause is None:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, functools.partial(_refuse, name, cause), "CompositeExplicitAutograd")
    return library


class _Loader:
    """torchvision's own loader, with its operators declared before."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        declare_operators(Path(str(module.__file__)).parent)
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)


class _TorchvisionHook:
    """Meta path finder that acts when torchvision is imported; whoever only looks for it finds it as it is."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "torchvision" else None
        if spec is None or spec.loader is None or spec.origin is None:
            return None
        spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def install() -> None:
    """Watch for the import of torchvision. Idempotent."""
    if not any(isinstance(finder, _TorchvisionHook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TorchvisionHook())
