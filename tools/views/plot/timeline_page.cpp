#include "tools/views/plot/timeline_page.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/views/plot/timeline_chart.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kMostEvents = 20;  // lines of each kind

class Page {
 public:
  Page(const recording::Timeline& timeline, const recording::Recording& recording, Size size,
       Charset charset)
      : timeline_(timeline), recording_(recording), size_(size), charset_(charset) {}

  Picture picture() {
    add_heading("memory of the process");
    add(host_chart(timeline_, recording_));
    for (const std::uint32_t device : devices_in(timeline_)) {
      picture_.emplace_back();
      add_heading(recording::device_label(recording_, device));
      add(device_chart(timeline_, recording_, device));
    }
    add_failures();
    add_marks();
    return std::move(picture_);
  }

 private:
  void add_heading(const std::string& text) { picture_.emplace_back(text, Colour::bold); }

  void add(const Chart& chart) {
    for (Line& line : lines_of(chart, size_, charset_)) picture_.push_back(std::move(line));
    picture_.push_back(legend_of(chart));
  }

  std::string when(std::uint64_t time_ns) const {
    const std::uint64_t start = recording_.header().start_monotonic_ns;
    const std::uint64_t range_ns = recording_.end_ns() - start;
    return fmt::format("{:>9}  {}", axis_text(time_ns > start ? time_ns - start : 0, range_ns),
                       time_text(recording_.realtime_of(time_ns)));
  }

  // Lines of the last events of a kind.
  template <class Event, class Describe>
  void add_events(const std::vector<Event>& events, std::string_view sign, std::string_view heading,
                  Colour colour, Describe describe) {
    if (events.empty()) return;
    picture_.emplace_back();
    add_heading(fmt::format("{} {}", sign, heading));
    const std::size_t first = events.size() > kMostEvents ? events.size() - kMostEvents : 0;
    if (first != 0) picture_.emplace_back(fmt::format("  … {} before", first), Colour::dim);
    for (std::size_t i = first; i < events.size(); ++i) {
      Line line{fmt::format("  {}  ", when(events[i].time_ns)), Colour::dim};
      picture_.push_back(line.add(describe(events[i]), colour));
    }
  }

  void add_failures() {
    add_events(timeline_.failures, kFailureSign, "refused", Colour::red,
               [this](const recording::FailureMoment& moment) {
                 session::Failure failure{};
                 recording_.view().read(session::TableId::failures, moment.failure, failure);
                 return fmt::format("{} of {}", name_of(static_cast<Api>(failure.api)),
                                    size_text(failure.bytes));
               });
  }

  void add_marks() {
    add_events(timeline_.marks, kMarkSign, "marks", Colour::plain,
               [](const recording::TimeMark& mark) { return printable(mark.text); });
    if (timeline_.dropped_marks != 0) {
      picture_.emplace_back(
          fmt::format("  and {}", plural(timeline_.dropped_marks,
                                         "more mark that did not fit into the recording",
                                         "more marks that did not fit into the recording")),
          Colour::dim);
    }
  }

  const recording::Timeline& timeline_;
  const recording::Recording& recording_;
  const Size size_;
  const Charset charset_;
  Picture picture_;
};

}  // namespace

Picture timeline_picture(const recording::Timeline& timeline, const recording::Recording& recording,
                         Size size, Charset charset) {
  return Page{timeline, recording, size, charset}.picture();
}

}  // namespace oomrec::tools::views
