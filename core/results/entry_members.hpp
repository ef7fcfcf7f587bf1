// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace regatta {

// The members of a case's entry under "results" in result.json, in the order of the columns in CSV output; result.json
// sorts them by name. Every case has all of them; unknown values are null. A failed case may have "dump" as well.
inline constexpr const char* entry_members[] = {"case",
                                                "status",
                                                "error",
                                                "workers",
                                                "servers",
                                                "threads",
                                                "batch_per_worker",
                                                "global_batch",
                                                "precision",
                                                "parameters",
                                                "table_parameters",
                                                "flops_per_sample",
                                                "lossy",
                                                "fingerprint",
                                                "samples_per_second",
                                                "throughput",
                                                "batches_per_second",
                                                "step_seconds",
                                                "baseline_samples_per_second",
                                                "noise",
                                                "speedup",
                                                "efficiency",
                                                "contention",
                                                "efficiency_over_contention",
                                                "undisturbed",
                                                "time",
                                                "lost",
                                                "communication_total",
                                                "server_update",
                                                "drain_seconds",
                                                "bytes",
                                                "strategy",
                                                "memory_peak_bytes",
                                                "cpu_seconds",
                                                "gpu",
                                                "loss",
                                                "metric",
                                                "skipped_records",
                                                "replicas_identical",
                                                "weights_sha256",
                                                "weights_moved",
                                                "given_bytes",
                                                "kernels",
                                                "warnings",
                                                "repeats"};

} // namespace regatta
