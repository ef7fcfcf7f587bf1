/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and offsets of the C headers, listed by one text that both languages compile. */
#include <regatta/ext/authenticate.h>
#include <regatta/ext/collectives.h>
#include <regatta/ext/device.h>
#include <regatta/ext/frequencies.h>
#include <regatta/ext/graph.h>
#include <regatta/ext/launcher.h>
#include <regatta/ext/nest.h>
#include <regatta/ext/regions.h>
#include <regatta/ext/wait.h>

#define LAYOUT                                                                                                         \
  {                                                                                                                    \
    sizeof(rg_host), offsetof(rg_host, extension), sizeof(rg_param), offsetof(rg_param, choices), sizeof(rg_value),    \
        sizeof(rg_component), offsetof(rg_component, extension), sizeof(rg_plugin),                                    \
        offsetof(rg_plugin, component_count), sizeof(rg_buffer), sizeof(rg_completion), sizeof(rg_tensor),             \
        offsetof(rg_tensor, init_b), sizeof(rg_input), sizeof(rg_model_setup), sizeof(rg_model_info),                  \
        sizeof(rg_model_memory), sizeof(rg_batch), sizeof(rg_hooks), sizeof(rg_step_result), sizeof(rg_model),         \
        sizeof(rg_attr), sizeof(rg_node), offsetof(rg_node, shape), sizeof(rg_graph), sizeof(rg_graph_source),         \
        sizeof(rg_executor), sizeof(rg_transport_caps), sizeof(rg_blob), sizeof(rg_world), sizeof(rg_transfer),        \
        offsetof(rg_transfer, cookie), sizeof(rg_counters), sizeof(rg_transport), sizeof(rg_regions),                  \
        sizeof(rg_collective), sizeof(rg_collectives), sizeof(rg_authenticate), sizeof(rg_cluster), sizeof(rg_plan),   \
        sizeof(rg_slice), sizeof(rg_arena), sizeof(rg_op), offsetof(rg_op, after), sizeof(rg_op_transfer),             \
        sizeof(rg_op_collective), sizeof(rg_op_fill), sizeof(rg_op_copy), sizeof(rg_op_axpy), sizeof(rg_op_scale),     \
        sizeof(rg_op_clip), sizeof(rg_op_accumulate), sizeof(rg_op_convert), sizeof(rg_op_top_k),                      \
        sizeof(rg_op_select), sizeof(rg_op_copy_rows), sizeof(rg_op_apply), offsetof(rg_op_apply, gradient),           \
        sizeof(rg_op_norm), sizeof(rg_op_commit), sizeof(rg_op_rows_read), sizeof(rg_op_rows_add),                     \
        sizeof(rg_op_rows_apply), sizeof(rg_op_rows_write), sizeof(rg_op_timer), sizeof(rg_strategy_host),             \
        sizeof(rg_rows), sizeof(rg_strategy), sizeof(rg_update), sizeof(rg_work), offsetof(rg_work, update),           \
        sizeof(rg_device), sizeof(rg_devices), sizeof(rg_sensors), sizeof(rg_table), sizeof(rg_table_rows),            \
        sizeof(rg_nested), sizeof(rg_nest), sizeof(rg_wait), sizeof(rg_frequencies), sizeof(rg_launcher)               \
  }
