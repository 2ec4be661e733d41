"""Bytes read off HIVM: modules written for the purpose, whose transfers are counted by hand."""

from __future__ import annotations

import pytest
import torch

from ascend_kernels.lowering.signature import Signature
from ascend_kernels.lowering.traffic import NotStaticError, measure

GM, UB = "#hivm.address_space<gm>", "#hivm.address_space<ub>"


def module(body: str, maps: str = "") -> str:
    """A kernel with two bf16 tensors, a count and the grid's dimensions as arguments."""
    arguments = (
        f"%arg0: memref<?xi8, {GM}> {{hacc.arg_type = #hacc.arg_type<workspace>}}, %arg1: memref<?xbf16, {GM}>, "
        f"%arg2: memref<?xi32, {GM}> {{tt.tensor_kind = 1 : i32}}, %arg3: i32, %arg4: i32, %arg5: i32, %arg6: i32"
    )
    head = f"  func.func @kernel({arguments}) attributes {{hivm.func_core_type = #hivm.func_core_type<AIV>}} {{"
    return f"{maps}\nmodule {{\n{head}\n{body}\n    return\n  }}\n}}\n"


def signature(count: int, table: torch.Tensor | None = None) -> Signature:
    return Signature(
        {"values": "*bf16", "table": "*i32", "count": "i32"}, {}, {"values": None, "table": table, "count": count}
    )


LOOP = f"""
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %0 = hivm.hir.get_block_idx -> i64
    %1 = arith.index_cast %0 : i64 to index
    %2 = arith.index_cast %arg3 : i32 to index
    scf.for %arg7 = %c0 to %2 step %c64 {{
      %3 = affine.min #map()[%arg7, %2]
      %4 = memref.reinterpret_cast %arg1 to offset: [%arg7], sizes: [64], strides: [1] : memref<?xbf16, {GM}> to memref<64xbf16, strided<[1], offset: ?>, {GM}>
      %5 = memref.subview %4[0] [%3] [1] : memref<64xbf16, {GM}> to memref<?xbf16, {GM}>
      func.call @load_gm_to_ubuf_1d_bfloat16_t(%5, %9) : (memref<?xbf16, {GM}>, memref<?xbf16, {UB}>) -> ()
    }}"""  # noqa: E501
CUT = "#map = affine_map<()[s0, s1] -> (64, s1 - s0)>"


def test_a_masked_tail_moves_its_elements_only() -> None:
    traffic = measure(module(LOOP, CUT), signature(count=100), (3,))
    assert traffic.loaded == {"values": 3 * 100 * 2}
    assert traffic.total == 600


def test_a_name_that_a_region_uses_again_is_not_the_other_regions_memory() -> None:
    view = f"%2 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [8], strides: [1] : memref<?xbf16, {GM}> to memref<8xbf16, {GM}>"  # noqa: E501
    body = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %arg7 = %c0 to %c1 step %c1 {{
      {view}
      func.call @load_gm_to_ubuf_1d_bfloat16_t(%2, %9) : (memref<8xbf16, {GM}>, memref<8xbf16, {UB}>) -> ()
    }}
    scf.for %arg7 = %c0 to %c1 step %c1 {{
      %2 = memref.cast %9 : memref<8xbf16, {UB}> to memref<8xbf16, {UB}>
      {view.replace("%2", "%3")}
      func.call @store_ubuf_to_gm_1d_bfloat16_t(%2, %3) : (memref<8xbf16, {UB}>, memref<8xbf16, {GM}>) -> ()
    }}"""
    traffic = measure(module(body), signature(count=1), (1,))
    assert (traffic.loaded, traffic.stored) == ({"values": 16}, {"values": 16})


def test_the_program_number_decides_a_branch() -> None:
    body = f"""
    %0 = hivm.hir.get_block_idx -> i64
    %c1_i64 = arith.constant 1 : i64
    %1 = arith.cmpi slt, %0, %c1_i64 : i64
    scf.if %1 {{
      %2 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [4, 8], strides: [8, 1] : memref<?xbf16, {GM}> to memref<4x8xbf16, {GM}>
      func.call @store_ubuf_to_gm_2d_bfloat16_t(%9, %2) : (memref<?x?xbf16, {UB}>, memref<4x8xbf16, {GM}>) -> ()
    }} else {{
      %3 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [5], strides: [1] : memref<?xbf16, {GM}> to memref<5xbf16, {GM}>
      func.call @store_ubuf_to_gm_1d_bfloat16_t(%9, %3) : (memref<?xbf16, {UB}>, memref<5xbf16, {GM}>) -> ()
    }}"""  # noqa: E501
    assert measure(module(body), signature(0), (3,)).stored == {"values": (32 + 5 + 5) * 2}


SCALAR_BOUND = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = hivm.hir.get_block_idx -> i64
    %1 = arith.index_cast %0 : i64 to index
    %2 = memref.reinterpret_cast %arg2 to offset: [%1], sizes: [1], strides: [1] : memref<?xi32, {GM}> to memref<1xi32, strided<[1], offset: ?>, {GM}>
    %3 = memref.load %2[%c0] : memref<1xi32, strided<[1], offset: ?>, {GM}>
    %4 = arith.index_cast %3 : i32 to index
    scf.for %arg7 = %c0 to %4 step %c1 {{
      %5 = memref.reinterpret_cast %arg1 to offset: [%arg7], sizes: [16], strides: [1] : memref<?xbf16, {GM}> to memref<16xbf16, {GM}>
      func.call @load_gm_to_ubuf_1d_bfloat16_t(%5, %9) : (memref<16xbf16, {GM}>, memref<?xbf16, {UB}>) -> ()
    }}"""  # noqa: E501


def test_a_bound_in_memory_is_read_from_the_tensors_values() -> None:
    table = torch.tensor([2, 0, 5], dtype=torch.int32)
    traffic = measure(module(SCALAR_BOUND), signature(0, table), (3,))
    assert traffic.loaded == {"table": 3 * 4, "values": 7 * 16 * 2}
    assert traffic.scalar == 12


def test_memory_at_an_address_that_the_kernel_has_read_counts_and_tiles_do_not() -> None:
    body = f"""
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : i64
    %0 = memref.load %arg2[%c0] : memref<?xi32, {GM}>
    %1 = arith.extsi %0 : i32 to i64
    %2 = hivm.hir.pointer_cast(%1) [%c64] : memref<?xi64, {GM}>
    %3 = hivm.hir.pointer_cast(%c64) : memref<64xi64, {UB}>
    %4 = memref.reinterpret_cast %2 to offset: [0], sizes: [64], strides: [1] : memref<?xi64, {GM}> to memref<64xi64, {GM}>
    func.call @load_gm_to_ubuf_1d_int64_t(%4, %3) : (memref<64xi64, {GM}>, memref<64xi64, {UB}>) -> ()"""  # noqa: E501
    assert measure(module(body), signature(count=1), (2,)).loaded == {"address": 2 * 512, "table": 2 * 4}


def test_a_bound_in_memory_without_values_is_not_static() -> None:
    with pytest.raises(NotStaticError, match="bounds of the loop over %arg7"):
        measure(module(SCALAR_BOUND), signature(0, torch.empty(3, device="meta")), (3,))


def test_a_kernel_without_transfers_is_not_counted_as_zero() -> None:
    with pytest.raises(NotStaticError, match="no transfer"):
        measure(module("    %c0 = arith.constant 0 : index"), signature(0), (1,))


def test_an_unknown_routine_on_global_memory_is_refused() -> None:
    body = f"    func.call @scatter_somewhere(%arg1) : (memref<?xbf16, {GM}>) -> ()"
    with pytest.raises(NotStaticError, match="routine scatter_somewhere"):
        measure(module(body), signature(0), (1,))


SEARCH = f"""
    %c0_i32 = arith.constant 0 : i32
    %0 = memref.reinterpret_cast %arg2 to offset: [0], sizes: [1], strides: [1] : memref<?xi32, {GM}> to memref<1xi32, {GM}>
    %c0 = arith.constant 0 : index
    %1 = memref.load %0[%c0] : memref<1xi32, {GM}>
    %2 = scf.while (%arg7 = %1) : (i32) -> i32 {{
      %3 = arith.cmpi sgt, %arg7, %c0_i32 : i32
      scf.condition(%3) %arg7 : i32
    }} do {{
    ^bb0(%arg8: i32):
      BODY
      %5 = arith.subi %arg8, %arg3 : i32
      scf.yield %5 : i32
    }}"""  # noqa: E501
STORE = f"""%4 = memref.reinterpret_cast %arg1 to offset: [0], sizes: [8], strides: [1] : memref<?xbf16, {GM}> to memref<8xbf16, {GM}>
      func.call @store_ubuf_to_gm_1d_bfloat16_t(%9, %4) : (memref<?xbf16, {UB}>, memref<8xbf16, {GM}>) -> ()"""  # noqa: E501


def test_a_search_of_unknown_length_counts_if_nothing_moves_in_it() -> None:
    assert measure(module(SEARCH.replace("BODY", "")), signature(count=1), (2,)).total == 2 * 4
    with pytest.raises(NotStaticError, match="the condition of a while loop"):
        measure(module(SEARCH.replace("BODY", STORE)), signature(count=1), (2,))


def test_a_search_of_known_length_counts_what_moves_in_it() -> None:
    steps = torch.tensor([3], dtype=torch.int32)
    traffic = measure(module(SEARCH.replace("BODY", STORE)), signature(count=1, table=steps), (2,))
    assert traffic.stored == {"values": 2 * 3 * 8 * 2}
