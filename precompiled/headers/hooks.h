// Precompiled header of common/, recorder/ and shim/ (docs/decisions/17-compile-time.md).
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/session/view.h"
#include "common/system/files.h"
