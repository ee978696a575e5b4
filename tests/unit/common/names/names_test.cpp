// Names of functions as their source has them, from C++'s, Cython's and Rust's symbols, and which
// functions are the standard library's.
#include "common/names/names.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "common/names/library_functions.h"

using namespace oomrec;

// --- Short C++ names, and which functions are the standard library's

namespace {

std::string named(std::string_view symbol) {
  char buffer[512];
  return std::string{names::cython_or_rust_name(symbol, buffer)};
}

// Reads the symbol cut anywhere, from the start of memory of exactly its size, into a buffer that
// is too small: under the sanitizers this finds every read or write beyond the end.
void check_cut_anywhere(std::string_view symbol) {
  for (std::size_t bytes = 0; bytes <= symbol.size(); ++bytes) {
    const std::string exact{symbol.substr(0, bytes)};
    char small[16];
    CHECK(names::short_name(exact, small).size() <= std::max(exact.size(), sizeof small - 1));
  }
}

template <class Rows>
void check_names(const Rows& rows) {
  for (const auto& row : rows) {
    const char* const symbol = row.first;
    CAPTURE(symbol);
    CHECK(named(symbol) == row.second);
    check_cut_anywhere(symbol);
  }
}

template <class Symbols>
void keep_their_names(const Symbols& symbols) {
  for (const char* const symbol : symbols) {
    CAPTURE(symbol);
    CHECK(named(symbol) == "");
    check_cut_anywhere(symbol);
  }
}

}  // namespace

TEST_CASE("a C++ symbol is demangled without its parameters, or kept") {
  constexpr std::pair<const char*, const char*> kRows[] = {
      {"main", "main"},
      {"_Z10load_tablem", "load_table"},
      {"_ZN5train5Model4growEm", "train::Model::grow"},
      {"_ZNK5train5Model4sizeEv", "train::Model::size"},
      {"_ZN5train5ModelC2ERKS0_", "train::Model::Model"},
      {"_ZN5train5ModelD1Ev", "train::Model::~Model"},
      {"_ZN12_GLOBAL__N_14growEv", "(anonymous namespace)::grow"},
      {"_ZN5train5StackIiLi4EE4pushERKi", "train::Stack::push"},
      {"_ZN5train5StackISt6vectorIiSaIiEELb1EE4pushEv", "train::Stack::push"},
      {"_Z4fillISt6vectorIdSaIdEEEvRT_m", "fill"},
      {"_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move"},
      {"_ZNSt6vectorIdSaIdEE17_M_default_appendEm", "std::vector::_M_default_append"},
      {"_ZN5train5ModelclEv", "train::Model::operator()"},
      {"_ZN4load5tableB5cxx11Ev", "load::table"},
      {"_ZZ4mainENKUlvE_clEv", "_ZZ4mainENKUlvE_clEv"},
      {"_ZN3fooS1_E", "_ZN3fooS1_E"},
      {"_ZN99foo", "_ZN99foo"},
      {"_ZN99999999999999999999999foo", "_ZN99999999999999999999999foo"},
      {"_ZN3fooI", "_ZN3fooI"},
      {"_ZNE", "_ZNE"},
      {"_Z", "_Z"},
  };
  char buffer[128];
  for (const auto& row : kRows) {
    const char* const symbol = row.first;
    CAPTURE(symbol);
    CHECK(std::string{names::short_cxx_name(symbol, buffer)} == row.second);
    // Cut anywhere, it is at most odd.
    for (std::size_t bytes = 0; bytes < std::string_view{symbol}.size(); ++bytes)
      CHECK(names::short_cxx_name(std::string_view{symbol}.substr(0, bytes), buffer).size() <= 127);
  }
}

TEST_CASE("functions of the standard library, in whatever module they are") {
  for (const char* name :
       {"std::vector<int>::push_back(int&&)", "__gnu_cxx::new_allocator<int>::allocate",
        "operator new(unsigned long)", "operator new[](unsigned long)", "_Znwm", "_ZNKSs4sizeEv",
        "_ZNSt6vectorIdSaIdEE17_M_default_appendEm", "_ZSt4moveIRiEONSt16remove_referenceIT_E",
        "_ZZSt39uninitialized_construct_using_allocatorIiENKUlvE_clEv",
        "alloc::raw_vec::finish_grow", "<alloc::raw_vec::RawVec<&str>>::grow_one",
        "<std::collections::hash::map::HashMap<u8, u8>>::insert", "__rustc::__rust_alloc",
        "<[u8]>::repeat", "<str>::to_uppercase"}) {
    CAPTURE(name);
    CHECK(names::is_library_function(name));
  }
  for (const char* name :
       {"", "main", "train::Model::grow", "stdx::vector::push_back", "my::std::vector", "standard",
        "_ZN5train5Model4growEm", "core::Engine::run", "allocate", "alloc_rows", "operator+",
        "<train::Row as core::clone::Clone>::clone", "<[u8] as train::Row>::parse",
        "numpy.random._generator.Generator.normal"}) {
    CAPTURE(name);
    CHECK_FALSE(names::is_library_function(name));
  }
}

// --- Names of Cython functions. The symbols are from Cython 0.29.37, 3.0.12 and 3.1.4, and from
// wheels of numpy, scikit-learn and gevent; the names are those that Cython itself puts into
// tracebacks

TEST_CASE("a Cython function has its name in the source") {
  constexpr std::pair<const char*, const char*> kRows[] = {
      {"__pyx_pw_5numpy_6random_10_generator_9Generator_31standard_normal",
       "numpy.random._generator.Generator.standard_normal"},
      {"__pyx_f_5numpy_6random_10_generator__shuffle_int", "numpy.random._generator._shuffle_int"},
      {"__pyx_getprop_5numpy_6random_10_generator_9Generator__bit_generator",
       "numpy.random._generator.Generator._bit_generator"},
      {"__pyx_setprop_3pkg_3sub_3mod_5Model_size", "pkg.sub.mod.Model.size"},
      {"__pyx_f_5numpy_import_array", "numpy.import_array"},
      {"__pyx_f_3pkg_3sub_3mod_5Model_cpm.constprop.0", "pkg.sub.mod.Model.cpm"},
      {"__pyx_f_3pkg_3sub_3mod_5Model_cpm__pyx_wrap_1", "pkg.sub.mod.Model.cpm"},
      {"__pyx_pw_3pkg_3sub_3mod_1top", "pkg.sub.mod.top"},
      {"__pyx_pf_3pkg_3sub_3mod_top", "pkg.sub.mod.top"},
      {"__pyx_pw_3pkg_3sub_3mod_5Model_3__init__", "pkg.sub.mod.Model.__init__"},
      {"__pyx_pw_3pkg_3sub_3mod_5Model_22to_2d", "pkg.sub.mod.Model.to_2d"},
      {"__pyx_pw_3pkg_3sub_3mod_5Plain_6_2x", "pkg.sub.mod.Plain._2x"},
      // The counter 3 is no scope of three letters: a wrapper has a counter.
      {"__pyx_pw_3pkg_3sub_3mod_5Model_3new_rows", "pkg.sub.mod.Model.new_rows"},
      {"__pyx_pw_3pkg_3sub_3mod_5outer_1inner", "pkg.sub.mod.outer.inner"},
      {"__pyx_pf_3pkg_3sub_3mod_5Model_4size___get__", "pkg.sub.mod.Model.size.__get__"},
      {"__pyx_pf_3pkg_3sub_3mod_5Model_2ge_genexpr", "pkg.sub.mod.Model.ge.genexpr"},
      {"__pyx_gb_3pkg_3sub_3mod_4expr_2generator4", "pkg.sub.mod.expr.generator4"},
      {"__pyx_gb_3pkg_3sub_3mod_6generator", "pkg.sub.mod.generator"},
      {"__pyx_pw_3pkg_3sub_3mod_3lam_lambda1", "pkg.sub.mod.lam.lambda1"},
      {"__pyx_pw_3pkg_3sub_3mod_24lambda2", "pkg.sub.mod.lambda2"},
      {"__pyx_lambda_funcdef_3pkg_3sub_3mod_lambda2", "pkg.sub.mod.lambda2"},
      {"__pyx_pw_6gevent_27_gevent_c_abstract_linkable___pyx_lambda_funcdef_6gevent_27_gevent_c_"
       "abstract_linkable_lambda",
       "gevent._gevent_c_abstract_linkable.lambda"},
      {"__pyx_fuse_0__pyx_pw_3pkg_3sub_3mod_5Model_24fm", "pkg.sub.mod.Model.fm"},
      {"__pyx_pw_3pkg_3sub_3mod_26__pyx_fuse_0fusedc", "pkg.sub.mod.fusedc"},
      {"__pyx_pw_3pkg_3sub_3mod_26__pyx_fuse_0_1fusedc", "pkg.sub.mod.fusedc"},
      {"__pyx_specialmethod___pyx_pw_3pkg_3sub_3mod_5Model_5__next__",
       "pkg.sub.mod.Model.__next__"},
      {"__pyx_memoryview___pyx_pf_15View_dot_MemoryView_10memoryview_20copy",
       "View.MemoryView.memoryview.copy"},
      {"__pyx_tp_new_3pkg_3sub_3mod_Model", "pkg.sub.mod.Model.tp_new"},
      {"__pyx_sq_item_3pkg_3sub_3mod_Model", "pkg.sub.mod.Model.sq_item"},
      {"__pyx_pymod_exec__generator", "_generator.<module>"},
      // Generated as C++.
      {"_ZL44__pyx_pw_7sklearn_4tree_5_tree_4Tree_13applyP7_objectPKS0_lS0_",
       "sklearn.tree._tree.Tree.apply"},
      {"_ZL39__pyx_tp_new_7sklearn_4tree_5_tree_TreeP11_typeobjectP7_objectS2_",
       "sklearn.tree._tree.Tree.tp_new"},
  };
  check_names(kRows);
}

TEST_CASE("other symbols keep their names") {
  constexpr const char* kSymbols[] = {
      "main", "", "_", "__pyx_", "__pyx_pw_", "__pyx_f_", "__pyx_gb_", "__pyx_pymod_exec_",
      "__Pyx_PyObject_Call", "__pyx_fatalerror.constprop.0", "__pyx_memoryview_copy_contents",
      "__pyx_array___getitem__", "__pyx_tp_new_Enum", "__pyx_pw___pyx_array_1__reduce_cython__",
      "__pyx_tp_new___pyx_scope_struct____Pyx_CFunc_53f338__6gevent_17x_y", "xx__pyx_pw_3mod_1f",

      // Without a name, without a scope, truncated, a length beyond the end.
      "__pyx_f_3mod_", "__pyx_pw_1f", "__pyx_pw_3mod_1", "__pyx_pw_99mod_1f", "__pyx_pw_0_1f",
      "__pyx_f_3mod_9Gen", "__pyx_f_3modx_f", "__pyx_f_99999999999999999999999999999999mod_f",
      "_ZL99__pyx_pw_3mod_1fP7_object", "_ZL__pyx_pw_3mod_1f", "_Z"};
  keep_their_names(kSymbols);
}

TEST_CASE("a name that does not fit is cut") {
  char buffer[12];
  CHECK(names::cython_or_rust_name("__pyx_pw_5numpy_6random_1standard_normal", buffer) ==
        "numpy.rando");
}

// --- Names of Rust functions. The symbols are of rustc 1.95 (v0) and from RFC 2603; the names are
// those of binutils' demangler without hashes and the types of constants

namespace {

// The position of a back reference: "_" for 0, "0_" for 1, "10_" for 63.
std::string base_62(std::size_t value) {
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string text;
  for (std::size_t left = value; left != 0; left /= 62) {
    --left;
    text.insert(text.begin(), kDigits[left % 62]);
    if (left < 62) break;
  }
  return text + "_";
}

}  // namespace

TEST_CASE("a Rust function has its name in the source") {
  constexpr std::pair<const char*, const char*> kRows[] = {
      {"_RNvCs4Jz2Mtfmu5I_1v4main", "v::main"},
      {"_RNvC6_123foo3bar", "123foo::bar"},
      {"_RNCNvCs4Jz2Mtfmu5I_1v4mains_0B3_", "v::main::{closure#1}"},
      {"_RNCNCNvC1v4main00", "v::main::{closure#0}::{closure#0}"},
      {"_RNvNtCs4Jz2Mtfmu5I_1vu9gre_6ka8iu9fllen_kva", "v::größe::füllen"},
      {"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
       "utf8_idents::საჭმელად_გემრიელი_სადილი"},
      {"_RNvMCs4Jz2Mtfmu5I_1vINtB2_3RowmKj4_E4push", "<v::Row<u32, 4>>::push"},
      {"_RNvXs_Cs4Jz2Mtfmu5I_1vINtB4_3RowmKj4_ENtB4_4Grow4growB4_",
       "<v::Row<u32, 4> as v::Grow>::grow"},
      {"_RNCNvXs_Cs4Jz2Mtfmu5I_1vINtB6_3RowmKj4_ENtB6_4Grow4dynm0B6_",
       "<v::Row<u32, 4> as v::Grow>::dynm::{closure#0}"},
      {"_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecReE8grow_oneCs4Jz2Mtfmu5I_1v",
       "<alloc::raw_vec::RawVec<&str>>::grow_one"},
      {"_RINvCs4Jz2Mtfmu5I_1v3genFUKClEhEB2_", "v::gen::<unsafe extern \"C\" fn(i32) -> u8>"},
      {"_RINvCs4Jz2Mtfmu5I_1v3genThEEB2_", "v::gen::<(u8,)>"},
      {"_RINvCs4Jz2Mtfmu5I_1v3genSlEB2_", "v::gen::<[i32]>"},
      {"_RINvC1v3genPhOsQAhj3_E", "v::gen::<*const u8, *mut i16, &mut [u8; 3]>"},
      {"_RINvC1v3genKb0_Kb1_Kc61_Kin7_Ko10000000000000000_KpE",
       "v::gen::<false, true, 'a', -7, 0x10000000000000000, _>"},
      {"_RINvCs4Jz2Mtfmu5I_1v3genDG_INtNtNtCsgEmfK2I1SDS_4core3ops8function2FnTRL0_hEEp6OutputINt"
       "NtBw_6option6OptionhENtNtBw_6marker4SendEL_EB2_",
       "v::gen::<dyn for<'a> core::ops::function::Fn<(&'a u8,), Output = core::option::Option<u8>> "
       "+ core::marker::Send>"},
      {"_RNSNvYNCNvCs4Jz2Mtfmu5I_1v4mains_0INtNtNtCsgEmfK2I1SDS_4core3ops8function6FnOnceTRhEE9"
       "call_once6vtableB8_",
       "<v::main::{closure#1} as core::ops::function::FnOnce<(&u8,)>>::call_once::{shim:vtable#0}"},
      {"_RNvC1v4main.llvm.1234567", "v::main"},
      {"_RNvC1v4main$cold", "v::main"},
      // Legacy.
      {"_ZN1v16Row$LT$T$C$_$GT$4push17h39881ba72e98ccdeE", "v::Row<T,_>::push"},
      {"_ZN1v4main28_$u7b$$u7b$closure$u7d$$u7d$17h6dd6babf30a084cfE", "v::main::{{closure}}"},
      {"_ZN1v13gr$uf6$$udf$e10f$ufc$llen17ha465babe1a9d29f3E", "v::größe::füllen"},
      {"_ZN43_$LT$v..Row$u20$as$u20$core..fmt..Debug$GT$3fmt17h39881ba72e98ccdeE.llvm.12",
       "<v::Row as core::fmt::Debug>::fmt"},
  };
  check_names(kRows);
}

TEST_CASE("what only looks like Rust keeps its name") {
  constexpr const char* kSymbols[] = {
      "_R", "_RNv", "_R1x", "_RNvC1v", "_RNvC1v4mainX", "_RNvC9v4main", "_RNvC1v9main",
      "_RNvC1v99999999999999999999999main", "_RNv1v", "_RB_", "_RNvB_4main", "_RNvBz_4main",
      "_RNvC1vu4_zzz", "_RNvC1vu3!!!", "_RMain", "_RINvC1v3genL2_E", "_RINvC1v3genKh_",
      "_RINvC1v3genKcd800_E", "_RINvC1v3genKhg_E", "_RINvC1v3genFG99999999999_EuE",
      // C++, and Rust without its hash.
      "_ZN5train5Model4growEm", "_ZN1v4mainE", "_ZN1v4main17h39881ba72e98ccdeX",
      "_ZN17h39881ba72e98ccdeE", "_ZN1v4main17h39881ba72e98ccd", "_ZN1v4main17hzz881ba72e98ccdeE",
      "_ZN99v4main17h39881ba72e98ccdeE", "_ZN"};
  keep_their_names(kSymbols);
}

TEST_CASE("hostile symbols are read in bounded time, depth and space") {
  std::string nested;
  while (nested.size() < (1 << 16)) nested += "_RNv";
  CHECK(named(nested) == "");
  for (const char* part : {"Nv", "INv", "M", "R", "T", "F", "D", "Y", "A", "S"}) {
    std::string deep = "_RINvC1v3gen";
    while (deep.size() < (1 << 16)) deep += part;
    CAPTURE(part);
    CHECK(named(deep) == "");
  }
  // Each tuple has the one before it twice: 2^40 elements.
  std::string bomb = "_RINvC1v1gThE";
  for (std::size_t i = 0, before = bomb.find("ThE"); i < 40; ++i) {
    const std::size_t at = bomb.size();
    const std::string reference = "B" + base_62(before - 2);
    bomb += "T" + reference + reference + "E";
    before = at;
  }
  CHECK(named(bomb + "E").size() == 511);
}
