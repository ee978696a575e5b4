#include "tools/recording/reading/object_counts.h"

#include <sstream>
#include <utility>

#include "tools/base/text.h"

namespace oomrec::tools::recording {

ObjectCounts object_counts_of(const std::string& text) {
  ObjectCounts counts;
  std::istringstream lines{text};
  std::string line;
  std::getline(lines, line);
  std::istringstream totals{line};
  int partial = 0;
  totals >> counts.objects >> counts.bytes >> counts.types >> counts.interpreters >>
      counts.took_ns >> partial;
  counts.is_partial = partial != 0;
  while (std::getline(lines, line)) {
    ObjectCounts::Row row;
    std::istringstream words{line};
    words >> row.count >> row.bytes;
    words.get();
    std::getline(words, row.type);
    row.type = printable(row.type);
    counts.rows.push_back(std::move(row));
  }
  return counts;
}

}  // namespace oomrec::tools::recording
