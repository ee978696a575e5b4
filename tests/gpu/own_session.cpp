#include "tests/gpu/own_session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace oomrec::own_session {
namespace {

using session::TableId;

session::View g_view;

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "own_session: %s\n", why);
  std::exit(2);
}

// The file mapped by the recorder.
std::string path() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos && line.ends_with(".session")) return line.substr(at);
  }
  give_up("no session: is the library preloaded?");
}

session::View open_view() {
  const int file = open(path().c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) give_up("the session cannot be read");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) give_up("the session cannot be mapped");
  const session::View opened(session::Bytes::contiguous(mapped, bytes));
  if (opened.problem() != session::Problem::none) give_up("the session cannot be understood");
  return opened;
}

// In the recorder's order.
Space space_of(session::Vendor vendor, session::DeviceKind kind) {
  using Kind = session::DeviceKind;
  const int further = kind == Kind::host                                 ? 1
                      : kind == Kind::imported || kind == Kind::reserved ? 2
                                                                         : 0;
  const auto first = vendor == session::Vendor::cuda ? Space::cuda : Space::hip;
  return static_cast<Space>(static_cast<int>(first) + further);
}

template <class Entry, class Visit>
void for_each(TableId table, Visit visit) {
  for (std::uint64_t i = 1; i < view().count(table); ++i)
    if (Entry entry; view().read(table, i, entry)) visit(i, entry);
}

bool is_live(const session::DeviceBlock& block) {
  return block.key != 0 && (block.flags & session::kDeviceDormant) == 0;
}

}  // namespace

const session::View& view() {
  if (g_view.problem() != session::Problem::none) reopen();
  return g_view;
}

void reopen() {
  if (g_view.problem() == session::Problem::none)  // so that path() does not find the parent's
    munmap(const_cast<std::byte*>(g_view.bytes().whole), g_view.bytes().total);
  g_view = open_view();
}

int ordinal_of(std::uint32_t entry) {
  session::Device device;
  return entry != 0 && view().read(TableId::devices, entry, device) ? device.ordinal : -1;
}

Figures figures(session::Vendor vendor, int ordinal) {
  Figures found{};
  for_each<session::Device>(TableId::devices, [&](std::uint64_t, const session::Device& device) {
    if (device.vendor != static_cast<std::uint8_t>(vendor) || device.ordinal != ordinal) return;
    found = {device.counted_bytes(),
             session::Device::at_least_zero(device.managed_bytes),
             session::Device::at_least_zero(device.pool_used_bytes),
             device.pool_reserved_bytes,
             device.peak_bytes,
             device.free_bytes,
             device.total_bytes,
             device.limit_bytes};
  });
  return found;
}

Held held(Space space) {
  Held sum;
  session::Holder holder;
  for (std::uint64_t i = 1; i < view().count(TableId::holders); ++i) {
    if (!view().holder(i, holder) || holder.space != static_cast<std::uint8_t>(space)) continue;
    sum.bytes += holder.live_bytes;
    sum.count += holder.live_count;
  }
  return sum;
}

Held blocks_of(Space space) {
  Held sum;
  for_each<session::DeviceBlock>(
      TableId::device_blocks, [&](std::uint64_t, const session::DeviceBlock& block) {
        const auto kind = static_cast<session::DeviceKind>(block.kind);
        if (!is_live(block) || kind == session::DeviceKind::none ||
            space_of(static_cast<session::Vendor>(block.vendor), kind) != space)
          return;
        sum.bytes += block.bytes;
        ++sum.count;
      });
  return sum;
}

std::optional<Block> block_at(session::DeviceKey what, std::uint64_t key) {
  std::optional<Block> found;
  for_each<session::DeviceBlock>(
      TableId::device_blocks, [&](std::uint64_t, const session::DeviceBlock& block) {
        if (block.key == key && block.what == static_cast<std::uint8_t>(what))
          found = {block.bytes, ordinal_of(block.device), block.references, is_live(block)};
      });
  return found;
}

std::vector<session::Event> new_events() {
  static std::map<std::uint64_t, std::uint64_t> read;  // lane: events
  std::vector<session::Event> events;
  for_each<session::Lane>(TableId::lanes, [&](std::uint64_t i, const session::Lane& lane) {
    const std::uint64_t end = lane.ring_next;
    const std::uint64_t begin =
        end > lane.ring_slots ? std::max(read[i], end - lane.ring_slots) : read[i];
    for (std::uint64_t number = begin; number < end; ++number) {
      session::Event event;
      if (view().event(lane, number, event) && is_device_space(event.space))
        events.push_back(event);
    }
    read[i] = end;
  });
  return events;
}

std::uint64_t failures() { return view().count(TableId::failures); }

Failure last_failure() {
  session::Failure failure;
  if (!view().read(TableId::failures, failures() - 1, failure)) return {};
  return {static_cast<Api>(failure.api),
          static_cast<Space>(failure.space),
          failure.bytes,
          failure.error,
          ordinal_of(failure.device.device),
          (failure.flags & session::kFailureByRecorder) != 0,
          failure.node,
          failure.device};
}

bool is_on_stack(std::uint32_t node, std::string_view function) {
  bool found = false;
  view().walk(node, [&](std::uint64_t frame) {
    session::Module module;
    if (session::kind_of(frame) != session::FrameKind::native ||
        !view().read(TableId::modules, session::module_of(frame), module))
      return;
    Dl_info info;
    const auto address = reinterpret_cast<void*>(module.base + session::offset_of(frame));
    found |= dladdr(address, &info) != 0 && info.dli_sname != nullptr && function == info.dli_sname;
  });
  return found;
}

}  // namespace oomrec::own_session
