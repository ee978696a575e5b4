// What the archives of elfutils 0.192, Debian 13's, call and do not contain: trees of libc, whose
// root comes first in a struct. Linked in only where it is missing (tools/meson.build). The lock
// that may follow the root is for elfutils built with locks, which no release of Debian's is.
#include <search.h>

typedef int Compare(const void*, const void*);

struct Tree {
  void* root;
};

void eu_search_tree_init(struct Tree* tree) { tree->root = 0; }

void* eu_tsearch(const void* key, struct Tree* tree, Compare* compare) {
  return tsearch(key, &tree->root, compare);
}

void* eu_tfind(const void* key, struct Tree* tree, Compare* compare) {
  return tfind(key, &tree->root, compare);
}

void* eu_tdelete(const void* key, struct Tree* tree, Compare* compare) {
  return tdelete(key, &tree->root, compare);
}

void eu_tdestroy(struct Tree* tree, void (*free_node)(void*)) {
  tdestroy(tree->root, free_node);
  tree->root = 0;
}

void eu_search_tree_fini(struct Tree* tree, void (*free_node)(void*)) {
  eu_tdestroy(tree, free_node);
}
