#include "common/text/frames.h"

#include "common/session/python_lines.h"
#include "common/text/text.h"

namespace oomrec::text {
namespace {

using session::Code;
using session::FrameKind;
using session::Module;
using session::SpecialFrame;
using session::TableId;
using session::View;

constexpr std::string_view kPlumbing[] = {
    "libc.so",  "libc-2",    "libstdc++",   "libc++",      "libgcc_s",    "libpthread", "libdl.so",
    "ld-linux", "liboomrec", "libjemalloc", "libtcmalloc", "libmimalloc", "linux-vdso", "[vdso]",
    "libcuda.", "libcudart", "libamdhip64", "_ctypes",     "libffi",
};

// "…/site-packages/numpy/core/x.so" → "numpy"; empty if the path is not in a package.
std::string_view package_of(std::string_view path) noexcept {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const auto at = path.find(folder);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + folder.size());
    return rest.substr(0, rest.find_first_of("/."));
  }
  return {};
}

// "libpython3.11.so.1.0" → "python", "libruby-3.1.so.3.1.2" → "libruby-3.1",
// "sound.cpython-311-x86_64-linux-gnu.so" → "sound", "train.bin" unchanged.
std::string_view plain_name(std::string_view path) noexcept {
  std::string_view name = base_name(path);
  if (name.starts_with("python") || name.starts_with("libpython")) return "python";
  for (const std::string_view ending : {".cpython-", ".abi3.so", ".so"})
    if (const auto at = name.find(ending); at != name.npos) return name.substr(0, at);
  return name;
}

// Whether the file is a library of a program that has another name: not the interpreter's own.
bool is_library(std::string_view path) noexcept {
  return base_name(path).find(".so") != std::string_view::npos && plain_name(path) != "python";
}

void write_native(InHook hook, JsonWriter& json, const View& view, std::uint64_t frame,
                  ExportedName names) noexcept {
  Module module{};
  const std::uint32_t id = session::module_of(frame);
  const bool known = id != 0 && view.read(TableId::modules, id, module);
  char name[256];
  char build_id[65];
  json.key("kind").string("native");
  json.key("function")
      .string_or_null(known ? exported_name(hook, names, module, frame, name) : std::string_view{});
  json.key("file").null();
  json.key("line").null();
  json.key("module").string_or_null(known ? view.string(module.path) : std::string_view{});
  json.key("build_id").string_or_null(known ? build_id_text(module, build_id) : std::string_view{});
  json.key("offset").number(session::offset_of(frame));
  json.key("inlined").boolean(false);
  json.key("guessed").boolean(session::is_guessed(frame));
}

void write_code(JsonWriter& json, const View& view, std::uint64_t frame) noexcept {
  Code code{};
  view.read(TableId::codes, session::code_of(frame), code);
  const std::uint32_t line = line_of(view, code, frame);
  json.key("kind").string(session::kind_of(frame) == FrameKind::python ? "python" : "native");
  json.key("function").string_or_null(view.string(code.name));
  json.key("file").string_or_null(view.string(code.file));
  json.key("line");
  line != 0 ? json.number(line) : json.null();
  for (const std::string_view key : {"module", "build_id", "offset"}) json.key(key).null();
  json.key("inlined").boolean(false);
  json.key("guessed").boolean(false);
}

void write_frame(InHook hook, JsonWriter& json, const View& view, std::uint64_t frame,
                 ExportedName names) noexcept {
  if (session::kind_of(frame) == FrameKind::special) return;
  json.begin_object(JsonLayout::one_line);
  session::has_code(frame) ? write_code(json, view, frame)
                           : write_native(hook, json, view, frame, names);
  json.end_object();
}

}  // namespace

std::uint32_t line_of(const View& view, const Code& code, std::uint64_t frame) noexcept {
  if (session::kind_of(frame) == FrameKind::script) return session::script_line_of(frame);
  return session::python_line(view.header().python.version_hex, code.first_line,
                              view.string(code.line_table), session::instruction_of(frame));
}

std::string_view label_of(const View& view, std::uint32_t node) noexcept {
  std::string_view label;
  view.walk(node, [&](std::uint64_t frame) noexcept {
    if (label.empty() && session::kind_of(frame) == FrameKind::special &&
        session::special_of(frame) == SpecialFrame::context)
      label = view.string(session::argument_of(frame));
  });
  return label;
}

bool is_plumbing(std::string_view module_path) noexcept {
  const std::string_view name = base_name(module_path);
  for (const std::string_view prefix : kPlumbing)
    if (name.starts_with(prefix)) return true;
  return false;
}

std::string_view requester_of(const View& view, std::uint32_t node,
                              std::span<char> buffer) noexcept {
  std::string_view package;
  std::string_view path;
  view.walk(node, [&](std::uint64_t frame) {
    Module module{};
    if (!path.empty() || session::kind_of(frame) != FrameKind::native) return;
    const std::uint32_t id = session::module_of(frame);
    if (id == 0 || !view.read(TableId::modules, id, module)) return;
    const std::string_view found = view.string(module.path);
    if (found.empty() || is_plumbing(found)) return;
    path = found;
    package = package_of(found);
  });
  const std::string_view program = plain_name(view.string(program_of(view.header())));
  Text text{buffer.data(), buffer.size()};
  if (!package.empty()) return text.add(package).view();
  if (path.empty()) return program.empty() ? "the program" : text.add(program).view();
  const bool of_program = !program.empty() && is_library(path);
  if (!of_program) return text.add(plain_name(path)).view();
  return text.add(program).add(" (").add(plain_name(path)).add(")").view();
}

std::string_view build_id_text(const Module& module, std::span<char> buffer) noexcept {
  Text text{buffer.data(), buffer.size()};
  const std::uint32_t bytes = module.build_id_bytes < sizeof module.build_id
                                  ? module.build_id_bytes
                                  : std::uint32_t{sizeof module.build_id};
  for (std::uint32_t i = 0; i < bytes; ++i) {
    text.add("0123456789abcdef"[module.build_id[i] >> 4]);
    text.add("0123456789abcdef"[module.build_id[i] & 15]);
  }
  return text.view();
}

std::string_view exported_name(InHook hook, ExportedName names, const Module& module,
                               std::uint64_t frame, std::span<char> buffer) noexcept {
  if (names == nullptr) return {};
  // A return address belongs to the preceding call.
  const std::uint64_t pc =
      module.base + session::offset_of(frame) - (session::is_exact(frame) ? 0 : 1);
  if (!names(hook, module.start, pc, buffer.data(), buffer.size())) return {};
  return std::string_view{buffer.data()};
}

void write_stack(InHook hook, JsonWriter& json, const View& view, std::uint32_t node,
                 ExportedName names) noexcept {
  json.begin_array();
  view.walk(node, [&](std::uint64_t frame) { write_frame(hook, json, view, frame, names); });
  json.end_array();
}

void write_frames(InHook hook, JsonWriter& json, const View& view,
                  std::span<const std::uint64_t> frames, ExportedName names) noexcept {
  json.begin_array();
  for (const std::uint64_t frame : frames) write_frame(hook, json, view, frame, names);
  json.end_array();
}

}  // namespace oomrec::text
