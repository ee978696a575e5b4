// The driver itself, its devices and contexts. Rows: tests/fake_gpu/core/front_end.h.
#pragma once

// clang-format off
#define FAKE_CUDA_CONTEXT_ROWS(X) \
  /* the driver */ \
  X(cuInit,              2000,  none, (unsigned flags),                  start_driver(flags)) \
  X(cuDriverGetVersion,  2020,  none, (int* version),                    put(version, kDriverVersion)) \
  X(cuGetErrorName,      6000,  none, (CUresult error, const char** name), error_name(error, name)) \
  X(cuGetErrorString,    6000,  none, (CUresult error, const char** text), error_text(error, text)) \
  X(cuGetProcAddress,    11030, none, (const char* name, void** function, int version, cuuint64_t flags), \
                                      look_up(name, function, version, flags, nullptr)) \
  X(cuGetProcAddress_v2, 12000, none, (const char* name, void** function, int version, cuuint64_t flags, int* status), \
                                      look_up(name, function, version, flags, status)) \
  /* devices */ \
  X(cuDeviceGetCount,     2000,  init, (int* count),                        put(count, device_count())) \
  X(cuDeviceGetUuid_v2,   11040, init, (void* uuid, CUdevice device),       device_uuid(uuid, device)) \
  X(cuDeviceTotalMem,     2000,  init, (unsigned* bytes, CUdevice device),  is_device(device) ? put(bytes, capacity(device)) : invalid_device) \
  X(cuDeviceTotalMem_v2,  3020,  init, (size_t* bytes, CUdevice device),    is_device(device) ? put(bytes, capacity(device)) : invalid_device) \
  X(cuDeviceGetAttribute, 2000,  init, (int* value, int attribute, CUdevice device), \
                                       is_device(device) ? put(value, attribute_value(attribute, device)) : invalid_device) \
  /* contexts */ \
  X(cuCtxCreate,      2000,  init, (CUcontext* out, unsigned flags, CUdevice device), create_context(handle_out(out), flags, device)) \
  X(cuCtxCreate_v2,   3020,  init, (CUcontext* out, unsigned flags, CUdevice device), create_context(handle_out(out), flags, device)) \
  X(cuCtxCreate_v3,   11040, init, (CUcontext* out, CUexecAffinityParam* affinities, int count, unsigned flags, CUdevice device), \
                                   create_context(handle_out(out), flags, device)) \
  X(cuCtxCreate_v4,   12050, init, (CUcontext* out, CUctxCreateParams* params, unsigned flags, CUdevice device), \
                                   create_context(handle_out(out), flags, device)) \
  X(cuGreenCtxCreate, 12040, init, (CUgreenCtx* out, CUdevResourceDesc resources, CUdevice device, unsigned flags), \
                                   create_green_context(handle_out(out), device)) \
  X(cuGreenCtxDestroy, 12040, init, (CUgreenCtx green),         destroy_context(green)) \
  X(cuCtxFromGreenCtx, 12040, init, (CUcontext* out, CUgreenCtx green), put(out, reinterpret_cast<CUcontext>(green))) \
  X(cuCtxDestroy,        2000,  init, (CUcontext handle),      destroy_context(handle)) \
  X(cuCtxDestroy_v2,     4000,  init, (CUcontext handle),      destroy_context(handle)) \
  X(cuCtxPushCurrent,    2000,  init, (CUcontext handle),      push_current(handle)) \
  X(cuCtxPushCurrent_v2, 4000,  init, (CUcontext handle),      push_current(handle)) \
  X(cuCtxPopCurrent,     2000,  init, (CUcontext* out),         pop_current(handle_out(out))) \
  X(cuCtxPopCurrent_v2,  4000,  init, (CUcontext* out),         pop_current(handle_out(out))) \
  X(cuCtxSetCurrent,     4000,  init, (CUcontext handle),      set_current(handle)) \
  X(cuCtxGetCurrent,     4000,  init, (CUcontext* out),         get_current(handle_out(out))) \
  X(cuCtxGetDevice,      2000,  context, (CUdevice* device),    current_device(device)) \
  X(cuCtxGetDevice_v2,   13000, init, (CUdevice* device, CUcontext of), context_device(device, of)) \
  X(cuCtxGetFlags,       7000,  context, (unsigned* flags),     context_flags(flags)) \
  X(cuCtxGetId,          12000, init, (CUcontext of, unsigned long long* id), context_id(of, id)) \
  X(cuCtxGetApiVersion,  3020,  init, (CUcontext of, unsigned* version), put(version, 3020)) \
  X(cuCtxGetLimit,       3010,  context, (size_t* value, int limit), put(value, 1024)) \
  X(cuCtxSetLimit,       3010,  context, (int limit, size_t value), success) \
  X(cuCtxGetStreamPriorityRange, 5050, context, (int* least, int* greatest), put(least, 0) + put(greatest, -5)) \
  X(cuCtxSynchronize,    2000,  context, (),                    synchronize_device()) \
  X(cuCtxEnablePeerAccess, 4000, context, (CUcontext peer, unsigned flags), success) \
  X(cuCtxDisablePeerAccess, 4000, context, (CUcontext peer),    success) \
  X(cuDevicePrimaryCtxRelease_v2,  11000, init, (CUdevice device), release_primary(device)) \
  X(cuDevicePrimaryCtxReset_v2,    11000, init, (CUdevice device), reset_primary(device)) \
  X(cuDevicePrimaryCtxGetState,    7000,  init, (CUdevice device, unsigned* flags, int* active), primary_state(device, flags, active)) \
  X(cuDevicePrimaryCtxSetFlags,    7000,  init, (CUdevice device, unsigned flags), set_primary_flags(device, flags)) \
  X(cuDevicePrimaryCtxSetFlags_v2, 11000, init, (CUdevice device, unsigned flags), set_primary_flags(device, flags)) \
  /* modules: whatever is loaded is accepted, nothing of it can run */ \
  X(cuModuleGetFunction,   2000,  context, (CUfunction* out, CUmodule module, const char* name), put_token(handle_out(out))) \
  X(cuModuleGetLoadingMode, 11070, init,   (int* mode),                                 put(mode, kEagerLoading)) \
  X(cuLibraryUnload,       12000, context, (CUlibrary library),                         success) \
  X(cuLibraryGetModule,    12000, context, (CUmodule* out, CUlibrary library),          put_token(handle_out(out))) \
  X(cuLibraryGetKernel,    12000, context, (CUkernel* out, CUlibrary library, const char* name), put_token(handle_out(out))) \
  X(cuKernelGetFunction,   12000, context, (CUfunction* out, CUkernel kernel),          put_token(handle_out(out))) \
  X(cuLaunchKernel,        4000,  context, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra), \
                                           is_stream(stream) ? success : invalid_handle)
// clang-format on
