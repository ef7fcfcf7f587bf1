/* SPDX-License-Identifier: Apache-2.0
 *
 * The counting model, but it prints wherever it can: while it is loaded, asked, made, run and unloaded. With NOISY_DIE
 * in the environment it aborts in its third step. */
#define regatta_plugin quiet_plugin
#include "counting_model.c"
#undef regatta_plugin

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* To both streams, buffered and not: clear the screen, a C1 control, text from right to left, no UTF-8. */
static void say(const char* when) {
  char line[200];
  printf("NOISE printed %s \x1b[2J\xc2\x9b\xe2\x80\xae\xff d\xc3\xa9j\xc3\xa0\n", when);
  const int n = snprintf(line, sizeof line, "NOISE written %s\n", when);
  if (write(1, line, (size_t)n) != n) abort();
  fprintf(stderr, "NOISE complained %s \x1b[2J\n", when);
}
__attribute__((constructor)) static void load(void) {
  say("while loaded");
}
__attribute__((destructor)) static void unload(void) {
  say("while unloaded");
}

static rg_status noisy_create(const rg_host* host, const rg_value* values, const rg_model_setup* setup, void** self) {
  say("while made");
  host->log(host->context, RG_LOG_DEBUG, "a detail");
  return create(host, values, setup, self);
}
static rg_status noisy_step(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result) {
  say("in a step");
  fflush(stdout);
  if (getenv("NOISY_DIE") && batch->step == 2) abort();
  return step(self, batch, hooks, result);
}

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  static rg_model loud;
  static rg_component loud_component;
  static rg_plugin plugin;
  static const rg_component* const components[] = {&loud_component};
  say("while asked");
  loud = functions;
  loud.create = noisy_create;
  loud.step = noisy_step;
  loud_component = component;
  loud_component.id = "noisy";
  loud_component.functions = &loud;
  plugin = *quiet_plugin(host);
  plugin.name = "noisy";
  plugin.components = components;
  return &plugin;
}
