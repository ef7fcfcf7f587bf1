// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regatta/abi/operations.h>

#include <cstdint>

namespace rg {

// [any] Returns the name of an rg_op_kind for messages to people: "all-reduce", "top k".
constexpr const char* operation_name(std::uint32_t kind) noexcept {
  switch (kind) {
  case RG_OP_SEND: return "send";
  case RG_OP_RECV: return "receive";
  case RG_OP_ALL_REDUCE: return "all-reduce";
  case RG_OP_REDUCE_SCATTER: return "reduce-scatter";
  case RG_OP_ALL_GATHER: return "all-gather";
  case RG_OP_BROADCAST: return "broadcast";
  case RG_OP_REDUCE: return "reduce";
  case RG_OP_GATHER: return "gather";
  case RG_OP_SCATTER: return "scatter";
  case RG_OP_ALL_TO_ALL: return "all-to-all";
  case RG_OP_BARRIER: return "barrier";
  case RG_OP_FILL: return "fill";
  case RG_OP_COPY: return "copy";
  case RG_OP_AXPY: return "axpy";
  case RG_OP_SCALE: return "scale";
  case RG_OP_CLIP: return "clip";
  case RG_OP_ACCUMULATE: return "accumulate";
  case RG_OP_CONVERT: return "convert";
  case RG_OP_TOP_K: return "top k";
  case RG_OP_SELECT: return "select";
  case RG_OP_GATHER_ROWS: return "gather rows";
  case RG_OP_SCATTER_ROWS: return "scatter rows";
  case RG_OP_RUN: return "run";
  case RG_OP_GEMM: return "gemm";
  case RG_OP_APPLY: return "apply";
  case RG_OP_NORM: return "norm";
  case RG_OP_COMMIT: return "commit";
  case RG_OP_ROWS_READ: return "read rows";
  case RG_OP_ROWS_ADD: return "add to rows";
  case RG_OP_ROWS_APPLY: return "apply rows";
  case RG_OP_ROWS_WRITE: return "write rows";
  case RG_OP_TIMER: return "timer";
  default: return "unknown operation";
  }
}

} // namespace rg
