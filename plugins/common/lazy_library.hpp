// SPDX-License-Identifier: Apache-2.0
//
// A library that is loaded when it is first needed. cuBLAS and NCCL are hundreds of megabytes, and the program opens
// every plugin at every start: linked, they would make each start 0.4 s longer, GPU or not (2 cores, 2026-11-21).
#pragma once

#include <string>

#include <dlfcn.h>
#include <regatta/plugin.hpp>

namespace cuda {

class lazy_library {
public:
  // Throws rg::error, RG_E_UNSUPPORTED where it is not on the machine. It stays loaded.
  explicit lazy_library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_) return;
    const char* why = dlerror();
    throw rg::error(RG_E_UNSUPPORTED, name_ + " cannot be loaded: " + (why ? why : "unknown reason"));
  }
  template <class F> void find(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(dlsym(handle_, symbol));
    if (!function) throw rg::error(RG_E_UNSUPPORTED, name_ + " has no function " + symbol + ": it is too old");
  }

private:
  std::string name_;
  void* handle_;
};

} // namespace cuda
