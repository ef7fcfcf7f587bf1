/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension (an rg_graph_source) of a model's component: the model's network as a list of nodes. regatta/layers.hpp
 * lists the ops, their attributes and the order of their weights; it also has the functions to build a graph. The rules
 * of abi.h hold.
 *
 * Executors initialise element e (counted row-major by the shape) of tensor t of a graph with number e % 4 of
 * rg::random_normals or rg::random_uniforms (regatta/random.hpp) at the address (e / 4, t, stream_init), times init_b
 * plus init_a, or spread from init_a to init_b. A model then starts with the same weights on every executor, and the
 * losses of its first step can be compared.
 */
#ifndef REGATTA_EXT_GRAPH_H
#define REGATTA_EXT_GRAPH_H

#include <regatta/abi/model.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_GRAPH "regatta.graph/1"

/* An attribute of a node: a number, or a list of numbers, or a text. */
typedef struct rg_attr {
  uint32_t struct_size;
  uint32_t count; /* of `numbers` */
  const char* name;
  double number;         /* integers are exact up to 2^53 */
  const double* numbers; /* [count]; null: no list */
  const char* text;      /* null: no text */
} rg_attr;

typedef struct rg_node {
  uint32_t struct_size;
  uint32_t ndim;
  const char* op;          /* "conv2d" */
  const char* name;        /* "conv1_2" */
  const uint32_t* inputs;  /* indices of earlier nodes */
  const uint32_t* weights; /* indices into rg_graph.tensors, in the order that the op defines */
  const rg_attr* attrs;
  uint32_t input_count, weight_count, attr_count;
  const int64_t* shape; /* [ndim]: of the output for one sample, canonical: channels, height, width */
} rg_node;

struct rg_graph {
  uint32_t struct_size;
  uint32_t node_count;
  const rg_node* nodes;     /* in an order in which they can be computed; the last node is the loss */
  const rg_tensor* tensors; /* in the order of their first use */
  const rg_input* inputs;   /* inputs[k] is the output of node k, for k < input_count */
  uint32_t tensor_count, input_count;
  const char* unit;      /* as rg_model_info.unit */
  uint32_t tokens_input; /* as rg_model_info.tokens_input */
};

typedef struct rg_graph_source {
  uint32_t struct_size;
  /* [main] [required] */
  rg_status (*create)(const rg_host* host, const rg_value* values, void** self);
  /* [main] [required] */
  void (*destroy)(void* self);
  /* [main] [required] The graph is valid until destroy; null: an error, with a text by host->fail() */
  const rg_graph* (*graph)(void* self);
} rg_graph_source;

#ifdef __cplusplus
}
#endif
#endif
