// Adds the stacks of a PyTorch snapshot to an image.
//
// Python lines become Python frames. C++ functions have a name but no address: they become frames
// of a fictitious module, whose symbols are returned separately.
#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/recording/reading/image.h"
#include "tools/recording/symbolize/module_symbols.h"

namespace oomrec::tools::formats {

inline constexpr const char* kNativeBuildId = "01";  // in hexadecimal

class StackNodes {
 public:
  StackNodes(const Pickle& pickle, recording::Image& image) : pickle_(pickle), image_(image) {}

  // The node of a list of frames, innermost first; 0: `frames` is empty, or not a list.
  std::uint32_t of_frames(const Pickle::Value& frames);

  // The node of a stack that is only a note.
  std::uint32_t of_note(std::string_view text);

  // Element i is the symbol at offset i + 1 in the module with build-id kNativeBuildId.
  std::vector<recording::LineInfo> take_native_names() { return std::move(native_names_); }

 private:
  std::uint32_t node(std::uint32_t parent, std::uint64_t frame);
  std::uint32_t outermost() {
    return node(0, session::special_frame(session::SpecialFrame::thread_group, 0));
  }
  std::uint64_t frame_of(const Pickle::Value& frame);
  std::uint64_t python_frame(std::string_view file, std::string_view name, std::uint32_t line);
  std::uint64_t native_frame(std::string_view file, std::string_view name, std::uint32_t line);

  const Pickle& pickle_;
  recording::Image& image_;
  std::vector<recording::LineInfo> native_names_;
  std::unordered_map<std::uint64_t, std::uint32_t> lists_;   // by identity
  std::unordered_map<std::uint64_t, std::uint64_t> frames_;  // by identity
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> nodes_;
  using Line = std::tuple<std::string_view, std::string_view, std::uint32_t>;
  std::map<Line, std::uint64_t> python_, native_;  // by file, function and line
  std::uint32_t module_ = 0;
};

}  // namespace oomrec::tools::formats
