// `oomrec report`: the HTML file of a recording, and where it is written.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::views {

// A report's page: one self-contained HTML file.
//
// Script and style (tools/views/report/page/) are assembled when oomrec is built, and embedded in
// the command. This adds the title, the initial view and the data.

// What the page shows at first.
struct InitialView {
  std::string_view view;    // a view of the page, such as "flame"; empty: its default
  std::string_view label;   // only the blocks of this label; empty: all
  std::string_view frames;  // "python", "native" or "both", which is the page's default, too
};

// The names of the page's views, in the order of its tabs.
std::vector<std::string> report_views();

// `data`: any bytes.
std::string report_page(std::string_view title, const InitialView& initial_view,
                        const std::string& data);

// Throws Error with nothing_found if nothing was allocated under the label.
std::string report_of(const bundles::Source& source, const InitialView& initial_view);

// Reads a redacted copy of the bundle, so the page cannot contain anything else.
std::string redacted_report_of(const bundles::Source& source, const InitialView& initial_view);

// The file of a report: its default name, and showing it in a browser.

// The default file, in the working directory. `which`: the pid, or "ranks".
std::filesystem::path report_file(const std::string& program, const std::string& which);

// Whether the file is a page that `oomrec report` wrote, and not a link.
bool is_own_report(const std::filesystem::path& file);

// Shows the file in the user's browser. False: no display, or xdg-open failed.
bool open_in_browser(const std::filesystem::path& file);

}  // namespace oomrec::tools::views
