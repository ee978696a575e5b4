// Writes the files of a bundle in order, publishes it, and maps errors to results.
#include <cerrno>

#include "common/bundle/directory.h"
#include "common/bundle/files.h"
#include "common/bundle/retention.h"
#include "common/limits/health.h"
#include "common/system/files.h"
#include "common/text/device_text.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

Result result_of(int error) noexcept {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Result::no_space;
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
      return Result::no_directory;
    case ETIMEDOUT:
      return Result::timed_out;
    default:
      return Result::failed;
  }
}

bool write_objects_of(Job& job) noexcept {
  const std::string_view objects = job.cause.texts->objects;
  const int fd = create_file(job, text::kObjectsFile);
  if (fd < 0) return false;
  const int result = system::write_all(fd, objects.data(), objects.size());
  system::close(fd);
  if (result < 0 && job.error == 0) job.error = -result;
  job.bytes += objects.size();
  return result >= 0;
}

bool write_files(InHook hook, Job& job) noexcept {
  return write_recording(hook, job) && write_events(hook, job) && write_environment(hook, job) &&
         write_symbols(hook, job) && write_processes(hook, job) &&
         (objects_file_of(job) == ObjectsFile::absent || write_objects_of(job)) &&
         write_metadata(hook, job) && write_manifest(hook, job);
}

int sync_file(int directory, const char* name) noexcept {
  const int fd = system::open_at(directory, name, O_RDONLY | O_NOFOLLOW);
  if (fd < 0) return fd;
  const int result = system::sync(fd);
  system::close(fd);
  return result;
}

int sync_files(const Job& job) noexcept {
  for (const char* const name : kFileNames)
    if (const int result = sync_file(job.directory, name); result < 0) return result;
  const int result = objects_file_of(job) == ObjectsFile::present
                         ? sync_file(job.directory, text::kObjectsFile)
                         : 0;
  return result < 0 ? result : system::sync(job.directory);
}

// Renames the temporary directory to the bundle: 0 or minus an errno.
int publish(int dump_directory, Job& job, std::uint64_t began_ns) noexcept {
  int result = sync_files(job);
  if (result < 0) return result;
  // After this long, other writers may consider us dead and remove our files.
  if (system::monotonic_ns() - began_ns > kStaleSeconds / 2 * 1'000'000'000U) return -ETIMEDOUT;
  result = system::rename_at(dump_directory, job.work.temporary, job.work.name);
  if (result == 0) system::sync(dump_directory);
  return result;
}

// In a process of `oomrec simulate` every bundle gets the trigger `simulated`, whoever writes it.
Cause with_simulated_trigger(Cause cause, const session::View& view) noexcept {
  if (view.problem() == session::Problem::none && view.header().simulated != 0)
    cause.trigger = Trigger::simulated;
  return cause;
}

}  // namespace

int create_file(Job& job, const char* name) noexcept {
  const int fd =
      system::open_at(job.directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0 && job.error == 0) job.error = -fd;
  return fd < 0 ? -1 : fd;
}

JsonFile::JsonFile(InHook hook, Job& job, const char* name) noexcept
    : job_(job),
      fd_(create_file(job, name)),
      json_(hook, fd_, job.work.json, sizeof job.work.json) {}

JsonFile::~JsonFile() {
  if (fd_ >= 0) system::close(fd_);
}

bool JsonFile::done() noexcept {
  if (fd_ < 0) return false;
  if (json_.finish()) {
    if (job_.drop_page_cache) system::drop_cache(fd_);
    job_.bytes += json_.bytes();
    return true;
  }
  if (job_.error == 0) job_.error = json_.error();
  return false;
}

std::uint64_t realtime_of(const session::View& view, std::uint64_t monotonic_ns) noexcept {
  const session::Header& header = view.header();
  return header.start_realtime_ns + (monotonic_ns - header.start_monotonic_ns);
}

std::string_view backend_of(const session::View& view, Space space, std::uint32_t device) noexcept {
  session::Device entry;
  if (!is_device_space(space)) return "cpu";
  if (space != Space::torch) return space < Space::hip ? "cuda" : "rocm";
  if (!text::read_device(view, device, entry)) return "cpu";  // tensors on the host
  return text::vendor_of(entry) == session::Vendor::cuda ? "cuda" : "rocm";
}

Subject subject_of(const session::View& view, const Cause& cause,
                   const verdict::Verdict& verdict) noexcept {
  session::Failure failure{};
  session::Device device;
  if (cause.failure != 0 && view.read(session::TableId::failures, cause.failure, failure))
    return {static_cast<Space>(failure.space), failure.device.device};
  const std::uint32_t near = view.header().near_device;
  if (verdict.limit.kind != LimitKind::device || !text::read_device(view, near, device)) return {};
  return {text::vendor_of(device) == session::Vendor::cuda ? Space::cuda : Space::hip, near};
}

std::string_view backend_of(const Job& job) noexcept {
  const text::ExceptionTexts* const texts = job.cause.texts;
  if (job.cause.failure == 0 && texts != nullptr && !texts->backend.empty()) return texts->backend;
  const Subject about = subject_of(job.view, job.cause, job.work.verdict);
  return backend_of(job.view, about.space, about.device);
}

Result write(InHook hook, const session::View& view, const Cause& given,
             const Destination& destination, Workspace& work, int& error,
             const Progress& progress) noexcept {
  const Cause cause = with_simulated_trigger(given, view);
  const std::uint64_t began_ns = system::monotonic_ns();
  Job job{view, cause, work, destination.max_total_bytes,
          cause.realtime_ns != 0 ? cause.realtime_ns : system::realtime_ns()};
  constexpr unsigned kNearPercent = 80;
  job.drop_page_cache =
      limit::usage_of_killing_limit(view.header().health).percent() >= kNearPercent;
  work.path[0] = '\0';
  error = 0;
  if (view.problem() != session::Problem::none) {
    error = EINVAL;
    return Result::failed;
  }
  char outcome[32];
  verdict::explain(work.verdict, view,
                   {cause.trigger, cause.failure, cause.reason,
                    outcome_text(cause.outcome, cause.outcome_value, outcome), cause.end,
                    cause.health, cause.child});

  const int dump_directory = open_dump_directory(destination.directory, work);
  if (dump_directory < 0) {
    error = -dump_directory;
    return result_of(error);
  }
  job.dump_directory = dump_directory;
  remove_leftovers(dump_directory, system::realtime_ns(), work);
  job.directory = claim_name(dump_directory, backend_of(job), job.created_ns, work);
  if (job.directory < 0) {
    error = -job.directory;
  } else {
    text::Text{work.path}.add(destination.directory).add('/').add(work.name);
    if (!write_files(hook, job)) {
      error = job.error != 0 ? job.error : EIO;
    } else {
      if (progress.data_written != nullptr) progress.data_written(hook, progress.argument);
      error = -publish(dump_directory, job, began_ns);
    }
    system::close(job.directory);
    if (error != 0) remove_directory(dump_directory, work.temporary, work);
  }
  if (error == 0) {
    enforce_bounds(dump_directory, work.name, {destination.max_dumps, destination.max_total_bytes},
                   work);
  } else {
    work.path[0] = '\0';
  }
  system::close(dump_directory);
  return error == 0 ? Result::written : result_of(error);
}

}  // namespace oomrec::bundle
