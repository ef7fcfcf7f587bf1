// SPDX-License-Identifier: Apache-2.0
//
// A model, a transport and a strategy that describe themselves wrongly, or break while they do. The parameter `mistake`
// says how; with "none" the model trains.
#include <regatta/abi.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <csignal>
#include <unistd.h>

namespace {

struct liar {
  std::string mistake;
  rg_tensor tensors[2];
  rg_input inputs[2];
  std::int64_t shapes[3][2]; // of the tensors, of the input
  float* gradients[2];
};

bool is(const rg_value* values, const char* mistake) {
  return std::strcmp(values[0].s, mistake) == 0;
}

[[noreturn]] void hang() {
  for (;;) ::pause();
}

// Up to 4 GiB, all of it touched: more than a test's control group grants.
void eat() {
  constexpr std::size_t piece = std::size_t{16} << 20;
  for (int i = 0; i < 256; ++i) std::memset(std::malloc(piece), 1, piece); // never freed
}

// ------------------------------------------------------------------------------------------------------- model ---

rg_status create(const rg_host*, const rg_value* values, const rg_model_setup*, void** self) {
  if (is(values, "crash in create")) raise(SIGSEGV);
  if (is(values, "exit in create")) std::exit(0);
  if (is(values, "throw in create")) throw std::runtime_error("create gave up");
  auto* m = new liar{};
  m->mistake = values[0].s;
  *self = m;
  return RG_OK;
}

void destroy(void* self) {
  auto* m = static_cast<liar*>(self);
  if (m->mistake == "crash in destroy") raise(SIGSEGV);
  delete m;
}

rg_status describe(void* self, rg_model_info* info) {
  auto& m = *static_cast<liar*>(self);
  const std::string& x = m.mistake;
  if (x == "crash in describe") raise(SIGSEGV);
  if (x == "throw in describe") throw std::runtime_error("describe gave up");
  if (x == "hang in describe") hang();
  for (rg_tensor& t : m.tensors) {
    t = {};
    t.struct_size = sizeof t;
    t.kind = RG_TENSOR_DENSE;
    t.type = RG_F32;
    t.ndim = 1;
    std::int64_t* const shape = m.shapes[&t - m.tensors];
    shape[0] = 16;
    t.shape = shape;
    t.decay = t.lr_scale = 1;
  }
  m.tensors[0].name = "weight";
  m.tensors[1].name = x == "tensor name twice" ? "weight" : x == "tensor name null" ? nullptr : "bias";
  rg_tensor& t = m.tensors[1];
  std::int64_t* const shape = m.shapes[1];
  const bool several = x == "several"; // of the next three
  if (x == "ndim" || several) t.ndim = 9;
  if (x == "shape zero") shape[0] = 0;
  if (x == "shape negative") shape[0] = -5;
  if (x == "overflow") {
    t.ndim = 2;
    shape[0] = shape[1] = std::int64_t{1} << 32;
  }
  if (x == "shape null") t.shape = nullptr;
  if (x == "kind") t.kind = 9;
  if (x == "type") t.type = RG_F64;
  if (x == "gradient_type") t.gradient_type = RG_BF16;
  if (x == "storage") t.storage = 3;
  if (x == "reordered") t.reordered = 1; // no mistake, but not what every strategy can take
  if (x == "max_rows") {
    t.kind = RG_TENSOR_ROWS;
    t.max_rows = 17;
  }
  rg_input& input = m.inputs[0] = {};
  input.struct_size = sizeof input;
  input.kind = RG_INPUT_VALUES;
  input.name = x == "input name null" ? nullptr : "x";
  input.type = RG_F32;
  input.ndim = x == "input ndim" ? 99 : 1;
  m.shapes[2][0] = x == "input shape" || several ? 0 : 4;
  input.shape = m.shapes[2];
  m.inputs[1] = input;
  info->tensors = x == "tensors null" ? nullptr : m.tensors;
  info->tensor_count = x == "tensor count" ? 4000000000U : 2;
  info->inputs = m.inputs;
  info->input_count = x == "input name twice" ? 2 : 1;
  info->unit = x == "unit null" || several ? nullptr : "samples";
  if (x == "tokens index") info->tokens_input = 2;
  if (x == "tokens kind") info->tokens_input = 1;
  if (x == "tokens type") {
    info->tokens_input = 1;
    m.inputs[0].kind = RG_INPUT_INDEX;
    m.inputs[0].type = RG_U8;
  }
  info->layout = x == "layout null" ? nullptr : "canonical";
  return RG_OK;
}

rg_status init(void*, std::uint32_t, const std::uint64_t*, std::uint64_t, std::uint64_t, void* out) {
  std::fill_n(static_cast<float*>(out), 16, 1.0F);
  return RG_OK;
}

rg_status bind(void* self, const rg_model_memory* memory) {
  auto& m = *static_cast<liar*>(self);
  for (int t = 0; t < 2; ++t) m.gradients[t] = static_cast<float*>(memory->gradients[t]);
  return RG_OK;
}

rg_status step(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result) {
  auto& m = *static_cast<liar*>(self);
  if (m.mistake == "eats memory") eat();
  if (m.mistake == "not supported here") return RG_E_UNSUPPORTED;
  for (std::uint32_t t = 0; t < 2; ++t)
    if (const rg_status s = hooks->need(hooks->context, t); s != RG_OK) return s;
  hooks->backward(hooks->context);
  for (std::uint32_t t = 0; t < 2; ++t) {
    for (int i = 0; i < 16; ++i) m.gradients[t][i] = 0.5F;
    hooks->ready(hooks->context, t);
  }
  result->loss_sum = static_cast<double>(batch->samples);
  result->count = batch->samples;
  return RG_OK;
}

// --------------------------------------------------------------------------------------------------- transport ---

rg_status create_transport(const rg_host*, const rg_value* values, void** self) {
  *self = new std::string(values[0].s);
  return RG_OK;
}
void destroy_transport(void* self) {
  delete static_cast<std::string*>(self);
}
rg_status caps(void* self, rg_transport_caps* out) {
  const std::string& x = *static_cast<std::string*>(self);
  if (x == "crash in caps") raise(SIGSEGV);
  out->memory = x == "memory" ? 0 : RG_MEMORY_HOST;
  out->p2p = x == "p2p" ? 0 : RG_P2P_INDEPENDENT;
  out->own_threads = x == "own_threads" ? 100000 : x == "many threads" ? 1000 : 0;
  return RG_OK;
}
rg_status listen(void*, const rg_world*, rg_blob*) {
  return RG_E_UNSUPPORTED;
}
rg_status connect(void*, const rg_blob*, std::uint64_t) {
  return RG_E_UNSUPPORTED;
}
rg_status transfer(void*, const rg_transfer*) {
  return RG_E_UNSUPPORTED;
}
rg_status poll(void*, std::uint64_t, std::uint64_t, rg_completion*, std::uint32_t, std::uint32_t* count) {
  *count = 0;
  return RG_OK;
}
void wake(void*) {}
rg_status cancel(void*, std::uint32_t) {
  return RG_OK;
}
rg_status close(void*, std::uint64_t) {
  return RG_OK;
}
rg_status counters(void*, rg_counters*) {
  return RG_OK;
}

// ---------------------------------------------------------------------------------------------------- strategy ---

rg_status plan(const rg_host*, const rg_value* values, const rg_cluster*, rg_plan* out) {
  if (is(values, "crash in plan")) raise(SIGSEGV);
  out->lanes = is(values, "no lanes") ? 0 : is(values, "lanes") ? 100000 : 1;
  out->period = is(values, "period") ? UINT64_MAX : 1;
  return RG_OK;
}
std::uint32_t talks(const rg_value*, const rg_cluster*, std::uint32_t, std::uint32_t) {
  return 1;
}
rg_status create_strategy(const rg_strategy_host*, const rg_value*, void**) {
  return RG_E_UNSUPPORTED;
}
rg_status completed(void*, const rg_completion*, std::uint32_t) {
  return RG_OK;
}

// ------------------------------------------------------------------------------------------------- description ---

template <class T> T sized() {
  T t{};
  t.struct_size = sizeof t;
  return t;
}

rg_model model_functions() {
  auto m = sized<rg_model>();
  m.create = create;
  m.destroy = destroy;
  m.describe = describe;
  m.init = init;
  m.bind = bind;
  m.step = step;
  return m;
}

rg_transport transport_functions() {
  auto t = sized<rg_transport>();
  t.create = create_transport;
  t.destroy = destroy_transport;
  t.caps = caps;
  t.listen = listen;
  t.connect = connect;
  t.send = t.recv = transfer;
  t.poll = poll;
  t.wake = wake;
  t.cancel = cancel;
  t.close = close;
  t.counters = counters;
  return t;
}

rg_strategy strategy_functions() {
  auto s = sized<rg_strategy>();
  s.plan = plan;
  s.talks = talks;
  s.create = create_strategy;
  s.destroy = destroy_transport;
  s.completed = completed;
  return s;
}

rg_param mistake_parameter() {
  auto p = sized<rg_param>();
  p.type = RG_PARAM_STRING;
  p.name = "mistake";
  p.help = "how it goes wrong";
  p.default_value = "\"none\"";
  return p;
}

const rg_model model = model_functions();
const rg_transport transport = transport_functions();
const rg_strategy strategy = strategy_functions();
const rg_param parameters[] = {mistake_parameter()};

rg_component component(std::uint32_t kind, const char* id, const void* functions) {
  auto c = sized<rg_component>();
  c.kind = kind;
  c.id = id;
  c.summary = "goes wrong as it is told";
  c.params = parameters;
  c.param_count = 1;
  c.functions = functions;
  return c;
}
const rg_component all[] = {component(RG_KIND_MODEL, "liar", &model),
                            component(RG_KIND_TRANSPORT, "liar_net", &transport),
                            component(RG_KIND_STRATEGY, "liar_plan", &strategy)};
const rg_component* const components[] = {&all[0], &all[1], &all[2]};

} // namespace

extern "C" RG_EXPORT const rg_plugin* regatta_plugin(const rg_host*) {
  static const rg_plugin plugin = [] {
    auto p = sized<rg_plugin>();
    p.abi_major = RG_ABI_MAJOR;
    p.abi_minor = RG_ABI_MINOR;
    p.name = "liar";
    p.version = "1";
    p.components = components;
    p.component_count = 3;
    return p;
  }();
  return &plugin;
}
