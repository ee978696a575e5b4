// Whether a Python line or a native module is the program's own, or belongs to a library that it
// uses.
//
// A figure is most useful at the innermost line that its reader can change. Works on text only, for
// the emergency writer and the tools.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "common/text/text.h"

namespace oomrec::text {

// Not the program's own: installed packages, the standard library
// ("…/lib/python3.11/json/decoder.py", also in a zip), and code without a file, except code typed
// in or given with -c.
constexpr bool is_programs_own(std::string_view python_file) noexcept {
  constexpr std::array<std::string_view, 5> kInstalled = {
      "site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3", "/pypy3"};
  constexpr std::array<std::string_view, 3> kTyped = {"<string>", "<stdin>", "<ipython"};
  const auto has = [&](std::string_view word) { return python_file.find(word) != word.npos; };
  const auto begins = [&](std::string_view word) { return python_file.starts_with(word); };
  if (begins("<")) return std::any_of(kTyped.begin(), kTyped.end(), begins);
  return !python_file.empty() && std::none_of(kInstalled.begin(), kInstalled.end(), has);
}

// "pandas" of "…/site-packages/pandas/core/frame.py"; empty: of no installed package.
constexpr std::string_view package_of(std::string_view python_file) noexcept {
  constexpr std::array<std::string_view, 2> kInstalled = {"site-packages/", "dist-packages/"};
  for (const std::string_view directory : kInstalled) {
    const std::size_t at = python_file.rfind(directory);
    if (at == python_file.npos) continue;
    python_file.remove_prefix(at + directory.size());
    return python_file.substr(0, python_file.find('/'));
  }
  return {};
}

// Of the standard library of Python, also of what is compiled into the interpreter.
constexpr bool is_standard_library(std::string_view python_file) noexcept {
  const auto has = [&](std::string_view word) { return python_file.find(word) != word.npos; };
  return python_file.starts_with("<frozen") || ((has("/lib/python3") || has("/lib64/python3")) &&
                                                !has("site-packages/") && !has("dist-packages/"));
}

// The same of a function in another language: of JavaScript, of Node.js' own modules; of Java, by
// the directory of its package, of the class library; of Lua, where it and LuaRocks have modules.
constexpr bool is_programs_own_script(std::string_view file) noexcept {
  constexpr std::array<std::string_view, 5> kLibrary = {"node:", "java/", "javax/", "jdk/", "sun/"};
  constexpr std::array<std::string_view, 4> kInstalled = {"node_modules/", "lua_modules/",
                                                          ".luarocks/", "/share/lua"};
  return !file.empty() &&
         std::none_of(kInstalled.begin(), kInstalled.end(),
                      [&](std::string_view part) { return file.find(part) != file.npos; }) &&
         std::none_of(kLibrary.begin(), kLibrary.end(),
                      [&](std::string_view beginning) { return file.starts_with(beginning); });
}

// The same of one without a file: of Java, of the class library.
constexpr bool is_programs_own_method(std::string_view function) noexcept {
  constexpr std::array<std::string_view, 4> kLibrary = {"java.", "javax.", "jdk.", "sun."};
  return std::none_of(kLibrary.begin(), kLibrary.end(),
                      [&](std::string_view package) { return function.starts_with(package); });
}

// Whether a Python file is the import system's, whose lines stand between a module and its
// importer.
constexpr bool is_import_machinery(std::string_view python_file) noexcept {
  return python_file.starts_with("<frozen importlib") ||
         python_file.find("/importlib/_bootstrap") != python_file.npos;
}

// Whether it is Lua's interpreter: "lua5.4", "liblua5.4.so.0", "luajit-2.1".
constexpr bool is_lua(std::string_view module_name) noexcept {
  for (const std::string_view part : {"lib", "lua", "jit"}) {
    if (module_name.starts_with(part))
      module_name.remove_prefix(part.size());
    else if (part == "lua")
      return false;
  }
  return module_name.empty() ||
         std::string_view{"-.0123456789"}.find(module_name[0]) != module_name.npos;
}

// Whether a native module is the interpreter's of Lua, or of Python: "libpython3.11.so.1.0",
// "python3.11", and the standard library's extension modules,
// "…/lib/python3.11/lib-dynload/_json.….so".
constexpr bool is_interpreter(std::string_view module_path) noexcept {
  const std::string_view name = base_name(module_path);
  const auto begins = [&](std::string_view word) { return name.starts_with(word); };
  if (begins("libpython") || begins("libpypy") || is_lua(name)) return true;
  if ((begins("python") || begins("pypy")) && !name.ends_with(".so")) return true;
  module_path.remove_suffix(name.size());
  constexpr std::string_view kExtensions = "/lib-dynload/";
  if (!module_path.ends_with(kExtensions)) return false;
  module_path.remove_suffix(kExtensions.size());
  return base_name(module_path).starts_with("python");
}

// Whether a native module came with the system or with a Python package.
constexpr bool is_installed(std::string_view module_path) noexcept {
  const auto has = [&](std::string_view word) { return module_path.find(word) != word.npos; };
  return has("site-packages/") || has("dist-packages/") || module_path.starts_with("/usr/lib") ||
         module_path.starts_with("/lib");
}

}  // namespace oomrec::text
