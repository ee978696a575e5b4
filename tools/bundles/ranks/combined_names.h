// Strings, modules, code objects and stacks of several recordings in one: what is the same in all
// of them stands there once. A rank is the outermost node of its stacks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/recording/reading/image.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

class CombinedNames {
 public:
  explicit CombinedNames(recording::Image& image) : image_(image) {}

  // Of one rank's recording, which must outlive the image: its texts are stored from there.
  class OfRank {
   public:
    OfRank(CombinedNames& all, const recording::Recording& recording, std::uint32_t rank);

    session::StringId string(session::StringId id);
    std::uint32_t node(std::uint32_t node);  // of the recording → of the image; 0: no room
    std::uint64_t frame(std::uint64_t frame);

   private:
    std::uint32_t module(std::uint32_t id);
    std::uint32_t code(std::uint32_t id);

    CombinedNames& all_;
    const session::View& view_;
    std::uint32_t root_;
    bool same_python_;  // as the first rank's: else lines cannot be decoded
    std::vector<std::uint32_t> nodes_, modules_;
    std::map<std::uint32_t, std::uint32_t> codes_;
    std::vector<std::pair<std::uint32_t, session::Node>> unknown_;  // of node()
  };

 private:
  recording::Image& image_;
  std::uint32_t python_ = 0;  // of the first rank that runs it
  std::map<std::pair<session::StringId, std::string>, std::uint32_t> modules_;
  std::map<std::array<std::uint32_t, 4>, std::uint32_t> codes_;
};

}  // namespace oomrec::tools::bundles
