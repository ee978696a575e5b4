// Names of Cython functions. The symbols are from Cython 0.29.37, 3.0.12 and 3.1.4, and from wheels
// of numpy, scikit-learn and gevent; the names are those that Cython itself puts into tracebacks.
#include <utility>

#include "tests/unit/common/names/names.h"

using oomrec::tests::check_cut_anywhere;
using oomrec::tests::named;

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
  for (const auto& row : kRows) {
    const char* const symbol = row.first;
    CAPTURE(symbol);
    CHECK(named(symbol) == row.second);
    check_cut_anywhere(symbol);
  }
}

TEST_CASE("other symbols keep their names") {
  for (const char* symbol : {"main",
                             "",
                             "_",
                             "__pyx_",
                             "__pyx_pw_",
                             "__pyx_f_",
                             "__pyx_gb_",
                             "__pyx_pymod_exec_",
                             "__Pyx_PyObject_Call",
                             "__pyx_fatalerror.constprop.0",
                             "__pyx_memoryview_copy_contents",
                             "__pyx_array___getitem__",
                             "__pyx_tp_new_Enum",
                             "__pyx_pw___pyx_array_1__reduce_cython__",
                             "__pyx_tp_new___pyx_scope_struct____Pyx_CFunc_53f338__6gevent_17x_y",
                             "xx__pyx_pw_3mod_1f",
                             "__pyx_f_3mod_",      // without a name
                             "__pyx_pw_1f",        // without a scope
                             "__pyx_pw_3mod_1",    // truncated
                             "__pyx_pw_99mod_1f",  // a length beyond the end
                             "__pyx_pw_0_1f",
                             "__pyx_f_3mod_9Gen",
                             "__pyx_f_3modx_f",
                             "__pyx_f_99999999999999999999999999999999mod_f",
                             "_ZL99__pyx_pw_3mod_1fP7_object",
                             "_ZL__pyx_pw_3mod_1f",
                             "_Z"}) {
    CAPTURE(symbol);
    CHECK(named(symbol) == "");
    check_cut_anywhere(symbol);
  }
}

TEST_CASE("a name that does not fit is cut") {
  char buffer[12];
  CHECK(oomrec::names::cython_or_rust_name("__pyx_pw_5numpy_6random_1standard_normal", buffer) ==
        "numpy.rando");
}
