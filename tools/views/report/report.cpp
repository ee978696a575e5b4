#include "tools/views/report/report.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>

#include "tools/base/directory.h"
#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/views/report/container.h"
#include "tools/views/report/data.h"

extern "C" {
extern const char kReportPage[], kReportPageEnd[];  // page_image.S.in
}

namespace oomrec::tools::views {

std::string report_of(const bundles::Source& source, const InitialView& initial_view) {
  const ReportData data = report_data(source);
  const auto label = std::ranges::find(data.labels, initial_view.label);
  if (!initial_view.label.empty() && label == data.labels.end()) {
    throw Error{
        Exit::nothing_found,
        fmt::format("nothing was allocated under the label '{}'", printable(initial_view.label)),
        "Leave --label out: the page then lists the labels."};
  }
  return report_page(report_title(source), initial_view, data.bytes);
}

std::string redacted_report_of(const bundles::Source& source, const InitialView& initial_view) {
  const TemporaryDirectory scratch;
  const std::filesystem::path bundle =
      scratch.path() / (source.bundle.empty() ? "recording" : source.bundle.filename());
  source.is_job() ? bundles::write_redacted_job(source, bundle)
                  : bundles::write_redacted(source, bundle);
  return report_of(bundles::open_source(bundle), initial_view);
}

namespace {

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

// Removes from the front of `page` everything up to `mark`, and returns the part before it.
std::string_view take_up_to(std::string_view mark, std::string_view& page) {
  const std::size_t at = page.find(mark);
  if (at == page.npos)
    throw std::logic_error{"the report's page in this build of oomrec is damaged"};
  const std::string_view part = page.substr(0, at);
  page.remove_prefix(at + mark.size());
  return part;
}

std::string_view empty_page() {
  return {kReportPage, static_cast<std::size_t>(kReportPageEnd - kReportPage)};
}

}  // namespace

std::vector<std::string> report_views() {
  std::string_view page = empty_page();
  take_up_to("data-views=\"", page);
  const std::vector<std::string_view> names = split(take_up_to("\"", page), ' ');
  return {names.begin(), names.end()};
}

std::string report_page(std::string_view title, const InitialView& initial_view,
                        const std::string& data) {
  std::string_view page = empty_page();
  std::string html;
  html.reserve(page.size() + data.size() / 3 * 4 + title.size() + 1024);
  html += take_up_to("OOMREC_VIEW", page);
  html += escaped(initial_view.view);
  html += take_up_to("OOMREC_LABEL", page);
  html += escaped(initial_view.label);
  html += take_up_to("OOMREC_FRAMES", page);
  html += escaped(initial_view.frames);
  html += take_up_to("OOMREC_TITLE", page);
  html += escaped(title);
  html += take_up_to("OOMREC_DATA", page);
  html += base64(data);
  html += page;
  return html;
}

std::filesystem::path report_file(const std::string& program, const std::string& which) {
  constexpr std::size_t kLongestName = 60;
  std::string name = program.substr(0, kLongestName);
  for (char& byte : name) {
    const auto is_in = [byte](char first, char last) { return first <= byte && byte <= last; };
    const bool plain = is_in('a', 'z') || is_in('A', 'Z') || is_in('0', '9') || byte == '.' ||
                       byte == '-' || byte == '_';
    if (!plain) byte = '_';
  }
  return fmt::format("oomrec-report-{}-{}.html", name, which);
}

bool is_own_report(const std::filesystem::path& file) {
  constexpr std::size_t kHeadBytes = 2048;  // the skeleton's head up to the title (page.html)
  const ForeignPath path = ForeignPath::in(file.parent_path(), file.filename().string());
  return first_bytes_of(path, kHeadBytes)
             .find(R"(<meta name="generator" content="oomrec report">)") != std::string::npos;
}

bool open_in_browser(const std::filesystem::path& file) {
  if (environment_variable("DISPLAY").empty() && environment_variable("WAYLAND_DISPLAY").empty())
    return false;
  const std::string path = std::filesystem::absolute(file).string();
  std::string words[] = {"xdg-open", path};
  char* const arguments[] = {words[0].data(), words[1].data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace oomrec::tools::views
