#include "tools/views/top/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"
#include "tools/sections/resident_memory.h"
#include "tools/views/plot/chart.h"
#include "tools/views/plot/timeline.h"
#include "tools/views/screen/picture.h"
#include "tools/views/top/figures.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kLeastRowsForChart = 20;
constexpr std::size_t kMostDevices = 2;  // lines of them
constexpr std::size_t kFixedLines = 5;   // title, figures, choice, heading, footer

std::size_t chart_rows(Size size) {
  if (size.rows < kLeastRowsForChart || size.columns < 50) return 0;
  return std::clamp<std::size_t>(size.rows / 4, 4, 12);
}

std::size_t chart_lines(Size size) {
  const std::size_t rows = chart_rows(size);
  return rows == 0 ? 0 : rows + 2;  // legend, axis
}

std::size_t account_lines(const recording::LiveSession& session) {
  return session.recording().has_residency() ? 1 : 0;
}

std::size_t device_lines(const recording::LiveSession& session) {
  return std::min(kMostDevices, session.timeline().moments.back().devices.size());
}

// The lowest limit of the host's memory.
const recording::LimitLine* nearest_limit(const recording::Timeline& timeline) {
  const recording::LimitLine* nearest = nullptr;
  for (const recording::LimitLine& limit : timeline.limits)
    if (limit.device == 0 && (nearest == nullptr || limit.bytes < nearest->bytes)) nearest = &limit;
  return nearest;
}

// "heap 412.0 MiB  map 1.2 GiB  RSS 1.9 GiB  of 8.0 GiB (--limit)".
Line figures_of(const recording::LiveSession& session) {
  const recording::Moment& now = session.timeline().moments.back();
  Line line{" "};
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    if (now.live_bytes[i] == 0) continue;
    line.add(fmt::format("{} ", name_of(static_cast<Space>(i))), Colour::dim);
    line.add(fmt::format("{}  ", size_text(now.live_bytes[i])), Colour::bold);
  }
  line.add("RSS ", Colour::dim);
  line.add(fmt::format("{}  ", size_text(now.rss_bytes)), Colour::bold);
  const std::uint64_t of_files =
      session.recording()
          .residency()
          .kind_bytes[static_cast<std::size_t>(session::ResidentKind::files)];
  if (of_files >= now.rss_bytes / 4 && of_files != 0)
    line.add(fmt::format("({} files)  ", size_text(of_files)), Colour::dim);
  if (const recording::LimitLine* limit = nearest_limit(session.timeline()))
    line.add(fmt::format("of {} ({})", size_text(limit->bytes), limit->name), Colour::dim);
  return line;
}

// Of what the resident memory consists: also of what no holder below has.
void add_account(Picture& picture, const recording::LiveSession& session) {
  const std::string account = sections::resident_line(session.recording());
  if (account_lines(session) != 0) picture.push_back(Line{" " + account, Colour::dim});
}

void add_devices(Picture& picture, const recording::LiveSession& session) {
  const std::vector<recording::DeviceMoment>& devices = session.timeline().moments.back().devices;
  for (std::size_t i = 0; i < std::min(kMostDevices, devices.size()); ++i) {
    const recording::DeviceMoment& device = devices[i];
    Line line{" "};
    line.add(recording::device_label(session.recording(), device.device) + " ", Colour::dim);
    line.add(size_text(device.counted_bytes), Colour::bold);
    if (device.total_bytes != 0) {
      line.add(fmt::format("  all processes {} of {}", size_text(device.used_bytes),
                           size_text(device.total_bytes)),
               Colour::dim);
    }
    if (device.torch_reserved_bytes != 0) {
      line.add(fmt::format("  torch {} of {} reserved", size_text(device.torch_allocated_bytes),
                           size_text(device.torch_reserved_bytes)),
               Colour::dim);
    }
    picture.push_back(std::move(line));
  }
}

void add_chart(Picture& picture, const Scene& scene, Size size) {
  const std::size_t rows = chart_rows(size);
  if (rows == 0) return;
  Chart chart = host_chart(scene.session.timeline(), scene.session.recording());
  chart.events.clear();
  if (const recording::LimitLine* limit = nearest_limit(scene.session.timeline()))
    chart.limits = {{limit->name, limit->bytes}};
  for (Line& line : lines_of(chart, {size.columns - 1, rows}, scene.charset))
    picture.push_back(std::move(line));
  picture.push_back(legend_of(chart));
}

Line tabs_of(const Scene& scene) {
  Line line{" "};
  for (std::size_t i = 0; i < std::size(kByNames); ++i) {
    const bool chosen = i == static_cast<std::size_t>(scene.choice.by);
    const std::string name = fmt::format("{}s", kByNames[i]);
    line.add(chosen ? fmt::format("[{}]", name) : fmt::format(" {} ", name),
             chosen ? Colour::bold : Colour::dim);
  }
  line.add(fmt::format("  {}", choice_text(scene.choice, scene.holders)), Colour::cyan);
  return line;
}

// A sign marks the column that rows are sorted by: it also shows without colours.
Line heading_of(const Scene& scene, std::size_t columns) {
  const auto title = [&](SortBy sort) {
    const std::string_view word = kSortNames[static_cast<std::size_t>(sort)];
    return fmt::format("{}{}", scene.choice.sort == sort ? "▾" : " ", word);
  };
  const bool estimated = scene.session.recording().estimated();
  std::string text;
  for (const Figure& figure : figures()) {
    if (columns < figure.from_columns) continue;
    const std::string word = title(figure.sort);
    text += std::string(figure.width - columns_of(word), ' ') + word;
  }
  text += fmt::format("  {}{}", kByNames[static_cast<std::size_t>(scene.choice.by)],
                      estimated ? "   (figures of rows are estimated)" : "");
  return Line::bar(text);
}

Line row_line(const Row& row, const Scene& scene, std::size_t columns) {
  Line line;
  for (const Figure& figure : figures()) {
    if (columns < figure.from_columns) continue;
    Span cell = figure.cell(row);
    cell.text = fmt::format("{:>{}}", cell.text, figure.width);
    line.spans.push_back(std::move(cell));
  }
  line.add("  " + row_text(row, scene.choice.by, scene.table));
  return line;
}

std::string_view state_of(const Scene& scene) {
  if (scene.session.ended()) return "ended  ";
  if (scene.session.recording().header().off_reason != 0) return "recorder off  ";
  return scene.paused ? "paused  " : "";
}

}  // namespace

std::size_t table_rows(const recording::LiveSession& session, Size size) {
  const std::size_t others =
      kFixedLines + account_lines(session) + device_lines(session) + chart_lines(size);
  return size.rows > others ? size.rows - others : 1;
}

std::string choice_text(const Choice& choice, const LiveHolders& holders) {
  std::string text = choice.space ? std::string{name_of(*choice.space)} : "all spaces";
  text += choice.group ? fmt::format(" · threads {}", printable(holders.groups()[*choice.group]))
                       : " · all threads";
  text += choice.frames == recording::Frames::both     ? " · all frames"
          : choice.frames == recording::Frames::python ? " · Python frames"
                                                       : " · native frames";
  if (!choice.search.empty()) text += fmt::format(" · with \"{}\"", printable(choice.search));
  return text;
}

Line title_of(const recording::LiveSession& session, std::size_t columns, std::string_view state) {
  const recording::Recording& recording = session.recording();
  const std::string right = fmt::format("{}{}  {} ", state, name_of(recording.mode_now()),
                                        clock_text(session.elapsed_ns()));
  const std::string left =
      fmt::format(" oomrec top  {} {}", session.process().pid, session.process().title());
  const std::size_t width = columns > columns_of(right) + 1 ? columns - columns_of(right) - 1 : 1;
  return Line::bar(fitted(left, width) + " " + right);
}

Picture picture_of(const Scene& scene, Size size) {
  const recording::LiveSession& session = scene.session;
  Picture picture;
  picture.push_back(title_of(session, size.columns, state_of(scene)));
  picture.push_back(figures_of(session));
  add_account(picture, session);
  add_devices(picture, session);
  add_chart(picture, scene, size);
  picture.push_back(tabs_of(scene));
  picture.push_back(heading_of(scene, size.columns));
  const std::size_t end =
      std::min(scene.rows.rows.size(), scene.scroll + table_rows(session, size));
  for (std::size_t i = scene.scroll; i < end; ++i) {
    picture.push_back(row_line(scene.rows.rows[i], scene, size.columns));
    picture.back().reversed = i == scene.selected;
  }
  if (scene.rows.rows.empty()) picture.push_back(Line{" no holder matches", Colour::dim});
  picture.resize(std::max<std::size_t>(size.rows, 1) - 1);
  picture.push_back(Line::bar(scene.footer));
  return picture;
}

Picture snapshot_of(const Scene& scene, std::size_t columns) {
  Picture picture;
  picture.push_back(title_of(scene.session, columns, state_of(scene)));
  picture.push_back(figures_of(scene.session));
  add_account(picture, scene.session);
  add_devices(picture, scene.session);
  picture.push_back(tabs_of(scene));
  picture.push_back(heading_of(scene, columns));
  for (const Row& row : scene.rows.rows) picture.push_back(row_line(row, scene, columns));
  return picture;
}

}  // namespace oomrec::tools::views
