// SPDX-License-Identifier: Apache-2.0
//
// A shared library that is loaded on first use. cuBLAS and NCCL are hundreds of megabytes, and the program opens every
// plugin at every start: linking them would add 0.4 s to each start, with or without a GPU (2 cores, 2026-11-21).
#pragma once

#include <string>

#include <dlfcn.h>
#include <regatta/plugin.hpp>

namespace cuda {

class lazy_library {
public:
  // Loads the library, which dlopen() searches by name, such as "libnccl.so.2". It stays loaded until the process ends.
  // Throws RG_E_UNSUPPORTED if it cannot be loaded.
  explicit lazy_library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_) return;
    const char* why = dlerror();
    throw rg::error(RG_E_UNSUPPORTED, name_ + " cannot be loaded: " + (why ? why : "unknown reason"));
  }
  // Sets the function pointer `function`, whose type must be that of the library's `symbol`. Throws RG_E_UNSUPPORTED if
  // the library has no such symbol.
  template <class F> void find(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(dlsym(handle_, symbol));
    if (!function) throw rg::error(RG_E_UNSUPPORTED, name_ + " has no function " + symbol + ": it is too old");
  }

private:
  std::string name_;
  void* handle_;
};

} // namespace cuda
