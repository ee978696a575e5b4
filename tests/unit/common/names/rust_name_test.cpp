// Names of Rust functions. The symbols are of rustc 1.95 (v0) and from RFC 2603; the names are
// those of binutils' demangler without hashes and the types of constants.
#include <utility>

#include "tests/unit/common/names/names.h"

using oomrec::tests::check_cut_anywhere;
using oomrec::tests::named;

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
  for (const auto& row : kRows) {
    const char* const symbol = row.first;
    CAPTURE(symbol);
    CHECK(named(symbol) == row.second);
    check_cut_anywhere(symbol);
  }
}

TEST_CASE("what only looks like Rust keeps its name") {
  for (const char* symbol :
       {"_R", "_RNv", "_R1x", "_RNvC1v", "_RNvC1v4mainX", "_RNvC9v4main", "_RNvC1v9main",
        "_RNvC1v99999999999999999999999main", "_RNv1v", "_RB_", "_RNvB_4main", "_RNvBz_4main",
        "_RNvC1vu4_zzz", "_RNvC1vu3!!!", "_RMain", "_RINvC1v3genL2_E", "_RINvC1v3genKh_",
        "_RINvC1v3genKcd800_E", "_RINvC1v3genKhg_E", "_RINvC1v3genFG99999999999_EuE",
        // C++, and Rust without its hash.
        "_ZN5train5Model4growEm", "_ZN1v4mainE", "_ZN1v4main17h39881ba72e98ccdeX",
        "_ZN17h39881ba72e98ccdeE", "_ZN1v4main17h39881ba72e98ccd", "_ZN1v4main17hzz881ba72e98ccdeE",
        "_ZN99v4main17h39881ba72e98ccdeE", "_ZN"}) {
    CAPTURE(symbol);
    CHECK(named(symbol) == "");
    check_cut_anywhere(symbol);
  }
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
