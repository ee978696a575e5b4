// Writes a recording whose every name is an attack: hostile_recording FILE.
//
// Markup, quotes, terminal commands, bytes that are no UTF-8, the longest names that a recorder
// writes, and longer ones. Driven by
// tests/integration/test_hostile_names.py, which shows it by every command.
#include <cstdio>
#include <fstream>

#include "tests/unit/common/session/session_image.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

// What each name begins with tells which one it was.
std::string hostile(const std::string& name) {
  return name +
         "<script>alert(1)</script><img src=x onerror=alert(1)>\"'`&amp;%n{}\\${x}"
         "\x1b[31m\x1b]0;owned\x07\x1b[2J\r\n\t\b\x7f\xc2\x9b"
         "31m\xff\xfe\xe2\x80\xae";
}

std::string huge(const std::string& name, std::size_t bytes) {
  std::string text = hostile(name);
  while (text.size() < bytes) text += text;
  text.resize(bytes);
  return text;
}

template <std::size_t N>
void fill(char (&field)[N], const std::string& name) {
  const std::string text = hostile(name);
  std::memcpy(field, text.data(), std::min(N, text.size()));  // without an end, where it is long
}

u32 code(SessionImage& image, const std::string& file, const std::string& function) {
  const StringId file_id = image.string(file);
  const StringId name_id = image.string(function);
  return image.add<Code>([&](Code& row) {
    row.file = file_id;
    row.name = name_id;
    row.first_line = 42;
  });
}

u32 module(SessionImage& image, const std::string& path, u8 build_id) {
  const StringId path_id = image.string(path);
  return image.add<Module>([&](Module& row) {
    row.base = 0x1000;
    row.start = 0x1000;
    row.end = 0x9000;
    row.path = path_id;
    row.build_id_bytes = 20;
    std::memset(row.build_id, build_id, 20);
  });
}

void fill_header(SessionImage& image) {
  Header& header = image.header();
  header.start_ticks = 1;
  header.ram_bytes = u64{16} << 30;
  header.soft_limit_bytes = u64{1} << 30;
  header.python.version_hex = 0x030b02f0;
  fill(header.host, "host");
  fill(header.oomrec_version, "v");
  fill(header.child.program, "child");
  fill(header.child.where, "where");
  fill(header.child.bundle, "bundle");
  fill(header.child.summary, "summary");
  fill(header.death.kernel_line, "kernel");
  fill(header.shared.path, "shared");
  header.child.pid = 4243;
  // A string may move the header.
  const auto set = [&](StringId Header::*field, const std::string& text) {
    const StringId id = image.string(text);
    image.header().*field = id;
  };
  using namespace std::string_literals;
  set(&Header::command_line, hostile("program") + "\0"s + hostile("--option=") + "\0"s);
  set(&Header::executable, hostile("/usr/bin/program"));
  set(&Header::program, hostile("program"));
  set(&Header::working_directory, hostile("/srv/"));
  set(&Header::dump_directory, hostile("/dumps/"));
  set(&Header::off_reason, hostile("off "));
  set(&Header::heap_note, hostile("heap "));
  set(&Header::allocator, hostile("liballocator.so "));
  image.header().preexisting_objects = image.string("12 3400 2 1 900 0\n7 2000 " + hostile("m."));
  set(&Header::cgroup, hostile("/cgroup/"));
  set(&Header::cgroup_path, hostile("/cgroup/"));
  const StringId status = image.string(hostile("python "));
  image.header().python.status = status;
  const StringId driver = image.string(hostile("/lib/libcuda.so"));
  image.header().drivers[0].path = driver;
}

SessionImage recording() {
  SessionImage image;
  fill_header(image);
  const StringId group = image.string(hostile("thread"));
  const StringId label = image.string(hostile("label"));
  const u32 thread = image.add<Thread>([&](Thread& row) {
    row.tid = 4242;
    row.group = group;
    fill(row.name, "t");
  });
  const u32 library = module(image, hostile("/lib/library.so"), 0x11);
  const u32 function = code(image, hostile("/srv/file.py"), hostile("function"));
  const u32 large =
      code(image, huge("/srv/large.py", kMaxStringBytes), huge("large", kMaxStringBytes));
  const u32 forged = code(image, huge("/srv/huge.py", 1 << 20), huge("huge", 1 << 20));

  const u32 lane = image.lane(64);
  u32 node = image.node(0, special_frame(SpecialFrame::thread_group, group));
  u64 address = 0x10000;
  for (const u64 frame : {special_frame(SpecialFrame::context, label), python_frame(function, 0),
                          python_frame(large, 0), python_frame(forged, 0),
                          script_frame(function, 7), script_frame(forged, ~u32{0}),
                          script_frame(0x1fff'ffff, 1), native_frame(library, 0x1234)}) {
    node = image.node(node, frame);
    image.holder(node, Space::heap, u64{100} << 20, 10);
    image.allocate(lane, Space::heap, address += 0x1000, u64{100} << 20, node);
  }
  image.add<Failure>([&](Failure& row) {
    row.time_ns = 2'000'000'000;
    row.realtime_ns = 1'700'000'001'000'000'000;
    row.bytes = u64{1} << 30;
    row.node = node;
    row.thread = thread;
    row.api = static_cast<u16>(Api::malloc);
    row.space = static_cast<u8>(Space::heap);
    row.flags = kFailureByRecorder;
    row.error = 12;
    row.live_bytes = u64{400} << 20;
    row.soft_limit_bytes = u64{1} << 30;
    row.ram_bytes = u64{16} << 30;
  });
  Crash& crash = image.header().crash;
  crash.thread = thread;
  crash.frame_count = 1;
  crash.frames[0] = native_frame(library, 0x1234, {.exact = true});
  crash.signal = 11;
  return image;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  SessionImage image = recording();
  std::ofstream file{words[1], std::ios::binary};
  file.write(reinterpret_cast<const char*>(image.data()),
             static_cast<std::streamsize>(image.size()));
  return file.good() ? 0 : 1;
}
