// SPDX-License-Identifier: Apache-2.0
//
// The part of CUDA's driver that cuDNN needs for planning: loading a compiled kernel succeeds. So cuDNN can plan for a
// described GPU on a machine without a driver. All other functions fail.
extern "C" {

int cuLibraryLoadData(void** library) {
  *library = library;
  return 0;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = kernel;
  return 0;
}
int cuLibraryUnload(void*) {
  return 0;
}

#define REGATTA_THERE(name)                                                                                            \
  int name() {                                                                                                         \
    return 34; /* CUDA_ERROR_STUB_LIBRARY */                                                                           \
  }
REGATTA_THERE(cuCtxGetCurrent)
REGATTA_THERE(cuCtxGetLimit)
REGATTA_THERE(cuCtxPopCurrent)
REGATTA_THERE(cuCtxPushCurrent)
REGATTA_THERE(cuDeviceGet)
REGATTA_THERE(cuDeviceGetCount)
REGATTA_THERE(cuDriverGetVersion)
REGATTA_THERE(cuGetErrorName)
REGATTA_THERE(cuGetErrorString)
REGATTA_THERE(cuKernelGetAttribute)
REGATTA_THERE(cuKernelSetAttribute)
REGATTA_THERE(cuLaunchCooperativeKernel)
REGATTA_THERE(cuLaunchKernel)
REGATTA_THERE(cuLaunchKernelEx)
REGATTA_THERE(cuLibraryLoadFromFile)
REGATTA_THERE(cuLinkAddData)
REGATTA_THERE(cuLinkComplete)
REGATTA_THERE(cuLinkCreate)
REGATTA_THERE(cuLinkDestroy)
REGATTA_THERE(cuOccupancyMaxPotentialClusterSize)
REGATTA_THERE(cuStreamGetCtx)
}
