#include "tools/views/report/page.h"

#include <stdexcept>

#include "tools/views/report/container.h"

extern "C" {
extern const char kReportPage[], kReportPageEnd[];  // page_image.S.in
}

namespace oomrec::tools::views {
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

}  // namespace

std::string report_page(std::string_view title, const InitialView& initial_view,
                        const std::string& data) {
  std::string_view page{kReportPage, static_cast<std::size_t>(kReportPageEnd - kReportPage)};
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

}  // namespace oomrec::tools::views
