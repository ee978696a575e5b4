#include "tools/formats/telemetry/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/base/csv.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::formats {
namespace {

constexpr std::string_view kEndOfArray = "\n]\n";

}  // namespace

RecordFile::RecordFile(std::string path, std::string_view format, std::vector<std::string> columns)
    : path_(std::move(path)), csv_(format == "csv"), columns_(std::move(columns)) {
  descriptor_ = path_.empty() || path_ == "-"
                    ? STDOUT_FILENO
                    : open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor_ < 0) {
    throw Error{Exit::bad_input,
                fmt::format("{} cannot be written: {}", printable(path_), std::strerror(errno)),
                "Name a file in a directory that you may write to: --output FILE"};
  }
  can_seek_ = !is_stdout() && lseek(descriptor_, 0, SEEK_CUR) == 0;
  if (csv_) {
    std::string names;
    for (const std::string& column : columns_)
      names += (names.empty() ? "" : ",") + csv_cell(column);
    write_all(names + "\n");
  } else {
    add_to_array("[");
  }
}

RecordFile::~RecordFile() {
  if (!csv_ && !can_seek_) {
    try {
      write_all(kEndOfArray);
    } catch (const Error&) {
      // add() has reported the full disk already.
    }
  }
  if (!is_stdout()) close(descriptor_);
}

void RecordFile::add(const Json& record) {
  if (csv_) {
    std::string text;
    for (const std::string& column : columns_)
      text += (&column == &columns_.front() ? "" : ",") + csv_cell(member(record, column));
    write_all(text + "\n");
  } else {
    add_to_array((records_ != 0 ? ",\n" : "\n") + json_text(record));
  }
  ++records_;
}

// If it can seek, overwrites the array's end with `text` and a new end, in one write.
void RecordFile::add_to_array(std::string_view text) {
  if (!can_seek_) return write_all(text);
  lseek(descriptor_, end_, SEEK_SET);
  write_all(std::string{text} + std::string{kEndOfArray});
  end_ += static_cast<std::int64_t>(text.size());
}

void RecordFile::write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(descriptor_, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      throw Error{Exit::bad_input,
                  fmt::format("{} could not be written: {}",
                              is_stdout() ? "the output" : printable(path_), std::strerror(errno)),
                  "Is the disk behind it full, or the reader gone?"};
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

}  // namespace oomrec::tools::formats
