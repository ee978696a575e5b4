// Translates strings, modules, code objects and stacks of several recordings into one image,
// without duplicates. The outermost node of each stack is the rank.
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

  // For one rank's recording. It must outlive the image, which refers to its strings.
  class OfRank {
   public:
    OfRank(CombinedNames& all, const recording::Recording& recording, std::uint32_t rank);

    session::StringId string(session::StringId id);
    // A node of the recording → one of the image; 0: the table is full.
    std::uint32_t node(std::uint32_t node);
    std::uint64_t frame(std::uint64_t frame);

   private:
    std::uint32_t module(std::uint32_t id);
    std::uint32_t code(std::uint32_t id);

    CombinedNames& all_;
    const session::View& view_;
    std::uint32_t root_;
    bool same_python_;  // as the first rank: otherwise its line tables cannot be decoded
    std::vector<std::uint32_t> nodes_, modules_;
    std::map<std::uint32_t, std::uint32_t> codes_;
    std::vector<std::pair<std::uint32_t, session::Node>> untranslated_;  // scratch of node()
  };

 private:
  recording::Image& image_;
  std::uint32_t python_ = 0;  // version of the first rank that runs it
  std::map<std::pair<session::StringId, std::string>, std::uint32_t> modules_;
  std::map<std::array<std::uint32_t, 4>, std::uint32_t> codes_;
};

}  // namespace oomrec::tools::bundles
