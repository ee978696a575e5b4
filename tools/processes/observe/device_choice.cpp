#include "tools/processes/observe/device_choice.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::processes {
namespace {

// Prefixes of the number: PyTorch's, TensorFlow's and ours.
constexpr std::array<std::string_view, 7> kPrefixes = {
    "cuda:", "hip:", "rocm:", "gpu:", "/GPU:", "/device:GPU:", ""};

}  // namespace

DeviceChoice DeviceChoice::of(const std::string& word) {
  if (word.empty()) return {};
  if (word == "cpu" || word == "host" || word == "-1" || word == "/CPU:0") return {Kind::host, 0};
  if (word == "cuda" || word == "gpu" || word == "hip" || word == "rocm") return {Kind::gpu, 0};
  for (const std::string_view prefix : kPrefixes) {
    if (!word.starts_with(prefix)) continue;
    const auto ordinal = parse_number<int>(std::string_view{word}.substr(prefix.size()));
    if (ordinal && *ordinal >= 0) return {Kind::gpu, *ordinal};
  }
  throw Error{Exit::bad_input, fmt::format("there is no device {}", printable(word)),
              word.starts_with("mps") ? "mps is not on Linux: give --device cpu, or cuda:0."
                                      : "Give --device cpu, or a number of a GPU: 0, cuda:0."};
}

}  // namespace oomrec::tools::processes
