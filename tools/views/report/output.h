// Where a report goes: what its file is called, and how it is shown.
#pragma once

#include <filesystem>
#include <string>

namespace oomrec::tools::views {

// A file in the working directory for a report of this program. `which`: the number of its process.
std::filesystem::path report_file(const std::string& program, const std::string& which);

// Shows the file in the user's browser. False: there is no display here, or no xdg-open.
bool open_in_browser(const std::filesystem::path& file);

}  // namespace oomrec::tools::views
