// SPDX-License-Identifier: Apache-2.0
//
// A fake NVML with the functions that the executor calls and fixed answers: GPUs 0 and 1 are joined by four direct
// links, 0 and 2 by two; 4 and 5 have 18 links each to a switch; 0 and 3 are joined through the host.
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int not_supported = 3, not_found = 6, gpus = 6;

int index_of(void* gpu) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(gpu)) - 1;
}
bool on_switch(int gpu) {
  return gpu >= 4;
}
// Returns the other end of link `link` of `gpu`: a GPU; -1: a switch; -2: there is no such link.
int end_of(int gpu, unsigned link) {
  if (on_switch(gpu)) return link < 18 ? -1 : -2;
  if (gpu == 0) return link < 4 ? 1 : link < 6 ? 2 : -2;
  return link < 4 && gpu == 1 ? 0 : -2;
}

} // namespace

extern "C" {

struct utilisation {
  unsigned gpu, memory;
};
struct memory {
  unsigned long long total, free, used;
};
struct pci_info {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** gpu) {
  unsigned domain = 0, bus = 0;
  if (std::sscanf(bus_id, "%x:%x:00.0", &domain, &bus) != 2 || bus < 0x3a || bus >= 0x3a + gpus) return not_found;
  *gpu = reinterpret_cast<void*>(static_cast<std::intptr_t>(bus - 0x3a + 1));
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned room) {
  std::snprintf(text, room, "999.1");
  return 0;
}
int nvmlDeviceGetName(void* gpu, char* text, unsigned room) {
  std::snprintf(text, room, "made up %d", index_of(gpu));
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, utilisation* u) {
  *u = {87, 12};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, memory* m) {
  *m = {150'000'000'000, 110'000'000'000, 40'000'000'000};
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int which, unsigned* mhz) {
  if (which != 1) return not_supported;
  *mhz = 1980;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* mw) {
  *mw = 612'500;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* mj) {
  *mj = 5'000'250;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 61;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int* level) {
  *level = 50;
  return 0;
}
int nvmlDeviceGetP2PStatus(void* a, void* b, int, int* status) {
  const int i = index_of(a), j = index_of(b);
  *status = i == 3 || j == 3 || on_switch(i) != on_switch(j) ? 5 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkState(void* gpu, unsigned link, int* up) {
  if (end_of(index_of(gpu), link) == -2) return not_supported;
  *up = 1;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* gpu, unsigned link, pci_info* p) {
  *p = {};
  const int end = end_of(index_of(gpu), link);
  std::snprintf(p->bus_id, sizeof p->bus_id, "00000000:%02X:00.0",
                end < 0 ? 0x05u : 0x3au + static_cast<unsigned>(end));
  return 0;
}

} // extern "C"
