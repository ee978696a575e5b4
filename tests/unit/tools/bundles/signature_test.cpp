// The signature: names that every build has, and whose memory counts.
#include "tools/bundles/signature/signature.h"

#include <doctest/doctest.h>

#include "tools/bundles/signature/holders.h"
#include "tools/recording/symbolize/function_name.h"

using namespace oomrec::tools;
using bundles::Frame;
using bundles::Frames;
using Shared = std::shared_ptr<const Frame>;
using bundles::Holder;
using bundles::Request;

namespace {

Shared python(std::string file, std::string function, bool own = true) {
  Frame frame;
  frame.python = frame.script = true;
  frame.own = own;
  frame.file = std::move(file);
  frame.function = std::move(function);
  frame.line = 7;
  return bundles::with_key(std::move(frame));
}

Shared native(std::string function, bool own = true, std::string module = "prog",
              std::string file = "") {
  Frame frame;
  frame.own = own;
  frame.function = std::move(function);
  frame.module = std::move(module);
  frame.file = std::move(file);
  return bundles::with_key(std::move(frame));
}

Holder holder(std::uint64_t bytes, Frames frames) {
  Holder held;
  held.bytes = bytes;
  held.frames = std::move(frames);
  return held;
}

std::string key_of(const std::vector<Holder>& holders) {
  return bundles::signature_of(holders, std::nullopt, "shop").key;
}

std::string key_of(const Shared& frame) { return frame->key; }

}  // namespace

TEST_CASE("a native name is that of the source") {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"grow", "grow"},
      {"grow.isra.0", "grow"},
      {"grow.part.3.cold", "grow"},
      {"grow.constprop.0.lto_priv.1", "grow"},
      {"void train::Rows<int, std::less<int>>::push<long>(long&&) const", "train::Rows::push"},
      {"train::grow(int) [clone .isra.0]", "train::grow"},
      {"(anonymous namespace)::Cache::put(int)", "Cache::put"},
      {"name[abi:cxx11](int)", "name"},
      {"train::run()::{lambda(int)#1}::operator()(int) const", "train::run::operator()"},
      {"(anonymous namespace)::run(int)::{lambda()#1}::operator()() const", "run::operator()"},
      {"main::$_1::operator()(int) const", "main::operator()"},
      {"int const& Cache<int>::get<(anonymous namespace)::run(int)::$_1>(int)", "Cache::get"},
      {"Rows::operator<(Rows const&) const", "Rows::operator<"},
      {"Rows::operator()(int)", "Rows::operator()"},
      {"train::Row::operator<<(int)", "train::Row::operator<<"},
      {"<train::Row<u32, 4>>::push", "train::Row::push"},
      {"<train::Row<u32> as core::ops::Add>::add", "train::Row::add"},
      {"train::main::{{closure}}", "train::main"},
      {"main.(*Cache).Put", "main.Cache.Put"},
      {"com.shop.Cache.put", "com.shop.Cache.put"},
      {"<>", "<>"},
      {"", ""},
  };
  for (const auto& [name, plain] : names) CHECK_MESSAGE(recording::plain_name(name) == plain, name);
}

TEST_CASE("the key of a frame is the same for every version of Python and every checkout") {
  CHECK(key_of(python("train/loader.py", "read")) == "loader.py:read");
  CHECK(key_of(python("other/loader.py", "Loader.read")) == "loader.py:read");
  CHECK(key_of(python("loader.py", "run.<locals>.read")) == "loader.py:read");
  CHECK(key_of(python("loader.py", "Loader.run.<locals>.<listcomp>")).empty());
  CHECK(key_of(python("loader.py", "<lambda>")) == "loader.py:<lambda>");
  CHECK(key_of(python("<ipython-input-7-0f3c>", "<module>")) == "<ipython>:<module>");
  CHECK(key_of(native("main", true, "prog", "src/prog.c")) == "prog:main");
  CHECK(key_of(native("main")) == "prog:main");
  // Of an inlined function debug information has the last name alone.
  CHECK(key_of(native("train::Rows::push")) == "push");
  CHECK(key_of(native("push")) == "push");
  CHECK(key_of(native("Rows::operator<")) == "operator<");
  CHECK(key_of(native("PyArray_New", false, "_umath.cpython-311-x86_64-linux-gnu.so")) ==
        "_umath:PyArray_New");
  Frame unnamed = *native("");
  unnamed.build_id = "0123456789abcdef0123";
  unnamed.offset = 0x1234;
  CHECK(key_of(bundles::with_key(unnamed)) == "prog@0123456789ab+0x1234");
  CHECK(key_of(bundles::with_key({})).empty());
}

TEST_CASE("a path is the innermost functions of the program, each once") {
  const Frames frames = {native("malloc", false, "libc.so.6"),
                         python("json/decoder.py", "decode", false),
                         python("a.py", "walk"),
                         python("a.py", "A.walk"),
                         python("a.py", "A.walk.<locals>.<genexpr>"),
                         python("b.py", "run"),
                         python("a.py", "walk"),
                         python("c.py", "<module>"),
                         python("d.py", "never")};
  CHECK(bundles::path_key(frames) == "a.py:walk <- b.py:run");
  CHECK(bundles::path_key(frames, 1) == "a.py:walk");
}

TEST_CASE("a lambda counts only if there is nothing else") {
  const Shared lambda = native("operator()", true, "prog", "src/prog.cpp");
  const Shared named = native("main::operator()", true, "prog", "src/prog.cpp");
  CHECK(bundles::path_key({native("render"), lambda, native("get")}) == "render <- get");
  CHECK(bundles::path_key({native("render"), named, native("get")}) == "render <- get");
  CHECK(bundles::path_key({lambda}) == "prog:operator()");
  CHECK(bundles::path_key({named}) == "prog:operator()");
}

TEST_CASE("without a function of the program's own, those of libraries") {
  const Frames frames = {native("malloc", false, "libc.so.6"),
                         native("std::vector<int>::push_back", false, "libfoo.so.1"),
                         native("foo_add", false, "libfoo.so.1"),
                         python("numpy/core/numeric.py", "full", false)};
  CHECK(bundles::path_key(frames) == "numeric.py:full");
  CHECK(bundles::path_key({frames[0], frames[1], frames[2]}) == "libfoo:foo_add");
  CHECK(bundles::path_key({frames[0], frames[1]}).empty());
}

TEST_CASE("bytes are summed by path, and the largest is the signature") {
  const Frames cache = {python("cache.py", "remember"), python("api.py", "handle")};
  Frames elsewhere = cache;
  elsewhere.insert(elsewhere.begin(), native("PyBytes_New", false, "libx.so"));
  const Frames batch = {python("train.py", "batch")};
  const std::vector<Holder> holders = {holder(45, batch), holder(30, cache), holder(25, elsewhere)};
  const bundles::Signature signature = bundles::signature_of(holders, std::nullopt, "shop");
  CHECK(signature.key == "cache.py:remember <- api.py:handle");
  CHECK(signature.coarse == "cache.py:remember");
  CHECK(signature.also == std::vector<std::string>{"train.py:batch"});
  CHECK(signature.top_share == doctest::Approx(0.55));
  CHECK(signature.title == "cache.py:remember ← api.py:handle");
}

TEST_CASE("resident bytes count where they are known") {
  std::vector<Holder> holders = {holder(1000, {python("a.py", "reserve")}),
                                 holder(100, {python("b.py", "fill")})};
  holders[0].resident_bytes = 10;
  holders[1].resident_bytes = 100;
  CHECK(key_of(holders) == "b.py:fill");
}

TEST_CASE("a title has the files of native functions") {
  const std::vector<Holder> holders = {
      holder(100, {native("train::push", true, "prog", "src/rows.cpp"), native("main")})};
  const bundles::Signature signature = bundles::signature_of(holders, std::nullopt, "");
  CHECK(signature.key == "push <- prog:main");
  CHECK(signature.title == "rows.cpp:push ← prog:main");
}

TEST_CASE("below a quarter no one holds it") {
  std::vector<Holder> holders;
  for (const char* name : {"a", "b", "c", "d", "e"}) holders.push_back(holder(20, {native(name)}));
  CHECK(key_of(holders) == "spread:shop");
  const bundles::Signature nameless = bundles::signature_of(holders, std::nullopt, "");
  CHECK(nameless.key == "spread");
  CHECK(nameless.also == std::vector<std::string>{"a", "b"});
  holders[4].bytes = 40;
  CHECK(key_of(holders) == "e");
  holders.push_back(holder(100, {}));  // what is not listed counts, too
  CHECK(key_of(holders) == "spread:shop");
}

TEST_CASE("a request of more than a quarter of the limit is a cause") {
  const std::vector<Holder> holders = {holder(60, {native("keep")})};
  const auto asked = [&](std::uint64_t bytes, std::uint64_t limit) {
    return bundles::signature_of(holders, Request{bytes, limit, {native("ask")}}, "");
  };
  CHECK(asked(100, 200).key == "ask");
  CHECK(asked(100, 200).is_request);
  CHECK(asked(50, 150).key == "keep");
  CHECK(asked(70, 400).key == "keep");  // too little of the limit
  CHECK(asked(100, 0).key == "keep");   // the limit is unknown
}

TEST_CASE("nothing known is no signature") {
  CHECK(key_of(std::vector<Holder>{}).empty());
  CHECK(key_of(std::vector{holder(100, {})}) == "spread:shop");
  CHECK(key_of(std::vector{holder(0, {native("a")})}).empty());
}

TEST_CASE("fewer frames keep the path, and fewer holders the sum") {
  Frames frames(50, native("inner", false, "libdeep.so"));
  frames.push_back(python("a.py", "hold"));
  frames.push_back(python("b.py", "run"));
  const std::string key = bundles::path_key(frames);
  for (const std::size_t most : {32UL, 8UL, 3UL}) {
    const Frames kept = bundles::selected(frames, most);
    CHECK(kept.size() == most);
    CHECK(bundles::path_key(kept) == key);
  }
  std::vector<Holder> holders;
  for (std::uint64_t i = 1; i <= 9; ++i) holders.push_back(holder(i, {native("f")}));
  holders.push_back(holder(50, {}));
  const std::vector<Holder> few = bundles::with_rest(holders, 3);
  CHECK(few.size() == 3);
  CHECK(few[0].bytes == 9);
  CHECK(few[1].bytes == 8);
  CHECK(few[2].bytes == 50 + 28);
  CHECK(few[2].frames.empty());
  CHECK(bundles::with_rest(holders, 20).size() == 10);
}
