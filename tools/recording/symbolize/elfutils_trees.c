// Search trees that the static libraries of elfutils 0.192 (Debian 13) call, but do not contain:
// libc's trees, with the root as the first member of a struct. Linked only where they are missing
// (tools/meson.build). In elfutils built with locks, a lock follows the root; no Debian release is
// built that way.
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
