#include "common/session/unrecorded_notes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "common/system/files.h"
#include "common/system/syscalls.h"

namespace oomrec::session {

void append_notes_path(system::Text& path, std::string_view directory,
                       std::string_view run) noexcept {
  if (directory.empty() || run.empty() || run.find('/') != run.npos) return;
  path << directory << '/' << run << kNotesSuffix;
}

bool add_note(const char* path, const UnrecordedNote& note) noexcept {
  char buffer[640];
  system::Text line{buffer, sizeof buffer - 1};  // with space for the newline
  line.signed_number(note.pid) << ' ';
  line.signed_number(note.parent_pid) << ' ';
  for (const char c : note.reason) line << (c == '\n' ? '?' : c);
  const std::size_t bytes = line.size();
  buffer[bytes] = '\n';

  const system::File file =
      system::File::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  struct stat facts {};
  return file.is_open() && system::call(SYS_fstat, file.descriptor(), &facts) == 0 &&
         (note.reason.empty() || static_cast<std::uint64_t>(facts.st_size) < kMostNoteBytes) &&
         file.write(buffer, bytes + 1) == 0;
}

}  // namespace oomrec::session
