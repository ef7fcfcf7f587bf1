// SPDX-License-Identifier: Apache-2.0
#include "lib/nvml.hpp"

#include "../../common/cuda_devices.hpp"
#include "../../common/lazy_library.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <fstream>

#include <regatta/device.hpp>

namespace cudnn {
namespace {

// The parts of nvml.h that are used; not every CUDA toolkit has that file. NVML never changes them: a changed function
// or structure gets a new name (NVML API reference, "Versioning").
using handle = void*; // nvmlDevice_t
struct utilisation {
  unsigned gpu, memory; // percent of the last sampling period, 1/6 s to 1 s
};
struct memory {
  unsigned long long total, free, used;
};
struct pci_info {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
enum { clock_sm = 1, clock_memory = 2, gpu_sensor = 0, p2p_nvlink = 2, p2p_ok = 0, most_links = 18 };

struct functions {
  int (*init)();
  int (*by_bus_id)(const char*, handle*);
  int (*driver)(char*, unsigned);
  int (*name)(handle, char*, unsigned);
  int (*utilisation)(handle, struct utilisation*);
  int (*memory)(handle, struct memory*);
  int (*clock)(handle, int, unsigned*);         // MHz
  int (*power)(handle, unsigned*);              // mW
  int (*energy)(handle, unsigned long long*);   // mJ since the driver was loaded; from Volta on
  int (*temperature)(handle, int, unsigned*);   // degrees Celsius
  int (*common_ancestor)(handle, handle, int*); // nvmlGpuTopologyLevel_t
  int (*p2p_status)(handle, handle, int, int*); // nvmlGpuP2PStatus_t
  int (*link_state)(handle, unsigned, int*);    // not 0: the link is up
  int (*link_remote)(handle, unsigned, pci_info*);
};

// Finds a function; null if this driver's NVML lacks it.
template <class F> void look_for(const cuda::lazy_library& library, F& function, const char* symbol) {
  try {
    library.find(function, symbol);
  } catch (const rg::error&) {
    function = nullptr;
  }
}
// Returns whether the function exists and succeeded.
template <class... P, class... A> bool knows(int (*function)(P...), A... arguments) {
  return function && function(arguments...) == 0;
}

// [any] NVML is thread-safe. It stays loaded until the process ends.
const functions& api() {
  static const functions all = [] {
    const cuda::lazy_library library("libnvidia-ml.so.1");
    functions f{};
    library.find(f.init, "nvmlInit_v2");
    library.find(f.by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
    look_for(library, f.driver, "nvmlSystemGetDriverVersion");
    look_for(library, f.name, "nvmlDeviceGetName");
    look_for(library, f.utilisation, "nvmlDeviceGetUtilizationRates");
    look_for(library, f.memory, "nvmlDeviceGetMemoryInfo");
    look_for(library, f.clock, "nvmlDeviceGetClockInfo");
    look_for(library, f.power, "nvmlDeviceGetPowerUsage");
    look_for(library, f.energy, "nvmlDeviceGetTotalEnergyConsumption");
    look_for(library, f.temperature, "nvmlDeviceGetTemperature");
    look_for(library, f.common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
    look_for(library, f.p2p_status, "nvmlDeviceGetP2PStatus");
    look_for(library, f.link_state, "nvmlDeviceGetNvLinkState");
    look_for(library, f.link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    if (const int e = f.init(); e != 0)
      throw rg::error(RG_E_UNSUPPORTED, "NVML cannot be used: its error " + std::to_string(e));
    return f;
  }();
  return all;
}

// "0000:3b:00.0"
std::string bus_id(std::int32_t index) {
  std::array<char, 32> text{};
  cuda::check(cudaDeviceGetPCIBusId(text.data(), text.size(), index), "asking where a device is");
  return text.data();
}

// CUDA numbers the visible GPUs (CUDA_VISIBLE_DEVICES), NVML all of them, so the GPU is identified by its bus.
handle open(std::int32_t index) {
  handle h = nullptr;
  if (const int e = api().by_bus_id(bus_id(index).c_str(), &h); e != 0)
    throw rg::error(RG_E_UNSUPPORTED,
                    "NVML does not know GPU " + std::to_string(index) + ": its error " + std::to_string(e));
  return h;
}

// Returns how many NVLinks between two GPUs are up: the direct ones, or a's links to switches if the GPUs are joined by
// switches.
unsigned links(handle a, handle b, const std::string& bus_of_b) {
  int joined = -1;
  if (!knows(api().p2p_status, a, b, p2p_nvlink, &joined) || joined != p2p_ok) return 0;
  unsigned up = 0, direct = 0;
  for (unsigned link = 0; link < most_links; ++link) {
    int state = 0;
    pci_info remote{};
    if (!knows(api().link_state, a, link, &state) || !state) continue;
    ++up;
    if (!knows(api().link_remote, a, link, &remote)) continue;
    // NVML's bus id has more leading zeros: "00000000:3B:00.0".
    const std::string other(remote.bus_id, strnlen(remote.bus_id, sizeof remote.bus_id));
    direct += other.size() >= bus_of_b.size() &&
              std::equal(bus_of_b.begin(), bus_of_b.end(), other.end() - static_cast<std::ptrdiff_t>(bus_of_b.size()),
                         [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
  }
  return direct ? direct : up;
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// CPUs and NUMA node near a device, from the Linux kernel.
std::string near(const std::string& bus) {
  std::string lower = bus, text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string folder = "/sys/bus/pci/devices/" + lower;
  const std::string cpus = first_line(folder + "/local_cpulist"), node = first_line(folder + "/numa_node");
  if (!cpus.empty()) text = "CPUs " + cpus;
  if (!node.empty() && node != "-1") text += (text.empty() ? "NUMA node " : ", NUMA node ") + node;
  return text;
}

} // namespace

rg_sensors read_sensors(std::int32_t index) {
  const handle gpu = open(index);
  rg_sensors s = rg::no_sensors();
  if (!knows(api().name, gpu, s.name, sizeof s.name)) s.name[0] = 0;
  std::array<char, 80> driver{}; // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  if (knows(api().driver, driver.data(), driver.size())) std::strncpy(s.driver, driver.data(), sizeof s.driver - 1);
  if (utilisation u{}; knows(api().utilisation, gpu, &u)) s.utilisation = u.gpu / 100.0;
  if (memory m{}; knows(api().memory, gpu, &m)) {
    s.memory_used = static_cast<double>(m.used);
    s.memory_total = static_cast<double>(m.total);
  }
  unsigned value = 0;
  if (knows(api().clock, gpu, clock_sm, &value)) s.clock = 1e6 * value;
  if (knows(api().clock, gpu, clock_memory, &value)) s.memory_clock = 1e6 * value;
  if (knows(api().power, gpu, &value)) s.power = 1e-3 * value;
  if (knows(api().temperature, gpu, gpu_sensor, &value)) s.temperature = value;
  if (unsigned long long energy = 0; knows(api().energy, gpu, &energy)) s.energy = 1e-3 * static_cast<double>(energy);
  return s;
}

std::string topology(std::int32_t a, std::int32_t b) {
  const std::string bus = bus_id(b);
  if (a == b) return near(bus);
  const handle first = open(a), second = open(b);
  if (const unsigned n = links(first, second, bus)) return "NV" + std::to_string(n);
  int level = -1;
  if (!knows(api().common_ancestor, first, second, &level)) return "";
  switch (level) {
  case 10: return "PIX";  // one PCIe bridge
  case 20: return "PXB";  // several PCIe bridges
  case 30: return "PHB";  // the host bridge
  case 40: return "NODE"; // the interconnect of the host bridges of a NUMA node
  case 50: return "SYS";  // the interconnect of NUMA nodes
  default: return "";
  }
}

} // namespace cudnn
