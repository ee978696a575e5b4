// Holders as text and as JSON, each with its stack.
//
// Shares are relative to the sum of a group, so a group holds only memory that adds up. PyTorch's
// tensors lie inside a driver's memory or the heap, and address space is no memory: each of them is
// a separate group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/facts/space.h"
#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::sections {

struct HolderGroup {
  std::string_view heading;
  std::vector<recording::StackFigures> rows;  // the largest first

  std::uint64_t bytes() const;
};

// The group of the spaces that add up comes first, even if it is empty. Other groups appear only if
// they have rows.
std::vector<HolderGroup> holder_groups(const std::vector<recording::StackFigures>& rows);

// All holders of the recording.
std::vector<HolderGroup> holder_groups(const bundles::Source&, recording::Stacks&, recording::At);

// The holders of one device's memory at the end.
HolderGroup holders_on(const bundles::Source&, const recording::DeviceFigures&, recording::Stacks&);

// What a holder was given, and what of it is in memory where that is notably less: "400.0 MiB, 8.0
// MiB of it resident," or, if it weighs that, "8.0 MiB resident of 400.0 MiB".
std::string held_text(std::uint64_t given, std::optional<std::uint64_t> resident_bytes,
                      bool weighs_resident);

struct HoldersStyle {
  recording::StackStyle stack;
  unsigned top = 0;  // number of rows; 0: those with 1 % or more, 10 at most
};

// The rows of a group by stack alone: what a line holds in several spaces is one figure.
std::string holders_text(const HolderGroup&, recording::Stacks&, const recording::Locations&,
                         const HoldersStyle&);

// At most `top` rows of the group.
Json holders_json(const HolderGroup&, const recording::Stacks&, const recording::Locations&,
                  std::size_t top);

// At which moment a view shows what was held.

// `asked`: the value of --at. Empty: the peak, if the process has freed most of it since; else the
// end.
recording::At moment_of(const bundles::Source&, std::string_view asked = {});

// The spaces of a recording: live bytes, peak and allocated bytes of each.

// A line for each space that was used.
std::string spaces_text(const recording::Recording&);

facts::SpaceTotals totals_of(const recording::Recording&, Space);
Json spaces_json(const recording::Recording&);  // all of them, by name

}  // namespace oomrec::tools::sections
