// The file of a report: its default name, and showing it in a browser.
#pragma once

#include <filesystem>
#include <string>

namespace oomrec::tools::views {

// The default file, in the working directory. `which`: the pid, or "ranks".
std::filesystem::path report_file(const std::string& program, const std::string& which);

// Whether the file is a page that `oomrec report` wrote, and not a link.
bool is_own_report(const std::filesystem::path& file);

// Shows the file in the user's browser. False: no display, or xdg-open failed.
bool open_in_browser(const std::filesystem::path& file);

}  // namespace oomrec::tools::views
