// Precompiled header of tools/ (docs/decisions/17-compile-time.md).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

// From gcc 13 on it brings in <format>, which makes the files that do not include it a fifth slower
// to compile.
#if __GNUC__ < 13
#include <chrono>
#endif

#include "common/session/view.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/deaths/death_observer.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/locations.h"
