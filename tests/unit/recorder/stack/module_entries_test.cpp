// Entries of modules that are used again, and what a reader sees meanwhile.
#include "recorder/stack/module_entries.h"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "common/session/view.h"
#include "recorder/session/writer.h"

using namespace oomrec;
using session::g_session;
using session::Module;
using session::TableId;

namespace {

const InHook kHook = OutsideHooks::in_hook();

void begin_session() {
  if (g_session.active()) return;
  REQUIRE(g_session.create(kHook, {.session_directory = "/dev/shm"}));
  g_session.remove_file(kHook);
}

std::string path_of(std::uint64_t number) {
  return "/lib/" + std::to_string(number) + std::string(number % 40, 'x') + ".so";
}

// A module of which every figure is the same.
Module module_of(std::uint64_t number) {
  Module module{};
  module.base = module.start = module.end = number;
  module.generation = static_cast<std::uint32_t>(number);
  for (std::uint8_t& byte : module.build_id) byte = static_cast<std::uint8_t>(number);
  module.build_id_bytes = 20;
  return module;
}

std::uint32_t add(std::uint64_t number) {
  return stack::add_module_entry(kHook, module_of(number), path_of(number));
}

bool is_whole(const Module& module) {
  if (module.base != module.start || module.base != module.end ||
      module.generation != static_cast<std::uint32_t>(module.base))
    return false;
  for (const std::uint8_t byte : module.build_id)
    if (byte != static_cast<std::uint8_t>(module.base)) return false;
  return true;
}

void free_all(std::uint32_t round) {
  std::uint32_t at = 1;
  while (!stack::free_module_entries(kHook, at, 7, round)) continue;
}

}  // namespace

TEST_CASE("an entry is used again once neither a slot nor a frame has it") {
  begin_session();
  std::uint32_t round = 1;
  const std::uint32_t loaded = add(11), in_frame = add(12), unused = add(13);
  REQUIRE((loaded != 0 && in_frame != 0 && unused != 0));
  const std::uint64_t frames[] = {session::native_frame(in_frame, 0x1234),
                                  session::python_frame(unused, 0),
                                  session::special_frame(session::SpecialFrame::context, unused)};
  const auto claim = [&] { stack::claim_modules(frames, ++round); };

  stack::disown_module_entry(in_frame);
  stack::disown_module_entry(unused);
  claim();
  CHECK(stack::is_module_claimed(in_frame, round));
  CHECK(!stack::is_module_claimed(unused, round));
  free_all(round);
  const session::View view = g_session.view();
  Module module{};
  REQUIRE(view.read(TableId::modules, unused, module));
  CHECK((module.end == 0 && module.path == 0));
  for (const auto& [id, number] : {std::pair{loaded, 11u}, {in_frame, 12u}}) {
    REQUIRE(view.read(TableId::modules, id, module));
    CHECK((module.base == number && is_whole(module)));
    CHECK(view.string(module.path) == path_of(number));
  }

  CHECK(add(14) == unused);
  REQUIRE(view.read(TableId::modules, unused, module));
  CHECK((module.base == 14 && view.string(module.path) == path_of(14)));
  CHECK(add(15) > unused);
  free_all(++round);  // no frame of the second one is left
  CHECK(add(16) == in_frame);
  free_all(++round);  // all have slots
  CHECK(add(17) > unused);
}

TEST_CASE("ever new modules need no more entries, and no more texts") {
  begin_session();
  std::uint32_t round = 1000;
  std::set<std::uint32_t> ids;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint32_t id = add(i);
    REQUIRE(id != 0);
    ids.insert(id);
    stack::disown_module_entry(id);
    if (i % 100 == 99) free_all(++round);
    if (i == 10'000) bytes = g_session.arena.populated_bytes();
  }
  CHECK(ids.size() <= 100);
  CHECK(g_session.arena.populated_bytes() == bytes);
}

TEST_CASE("a reader never sees a part of one entry and a part of another") {
  begin_session();
  const std::uint32_t id = add(1);
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> whole{0};
  std::uint64_t torn = 0, none = 0;
  std::thread reader([&] {
    const session::View view = g_session.view();
    Module module;
    while (!ends) {
      if (!view.read(TableId::modules, id, module)) break;
      if (module.end == 0)
        ++none;
      else if (is_whole(module))
        ++whole;
      else
        ++torn;
    }
  });
  std::uint32_t round = 100'000;
  // On a busy machine the reader may not run for a while.
  for (std::uint64_t i = 2; i < 200'000 || (whole == 0 && i < 200'000'000); ++i) {
    stack::disown_module_entry(id);
    std::uint32_t at = id;
    stack::free_module_entries(kHook, at, 1, ++round);
    REQUIRE(add(i) == id);
  }
  ends = true;
  reader.join();
  MESSAGE("whole: ", whole.load(), ", none: ", none);
  CHECK(torn == 0);
  CHECK(whole != 0);
}
