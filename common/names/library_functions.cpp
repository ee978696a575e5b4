#include "common/names/library_functions.h"

#include <algorithm>

namespace oomrec::names {
namespace {

// `core::` alone may be a C++ program's own; "<core::…>" is Rust's.
constexpr std::string_view kBeginnings[] = {
    "std::",        "__gnu_cxx::",    "operator new", "_ZNSt",
    "_ZNKSt",       "_ZSt",           "_ZNSa",        "_ZNSs",
    "_ZNKSs",       "_Znw",           "_Zna",         "_ZN9__gnu_cxx",
    "alloc::",      "hashbrown::",    "__rustc::",    "<std::",
    "<alloc::",     "_ZNK9__gnu_cxx", "<core::",      "__rust_",
    "<hashbrown::", "<&dyn core::",   "<&mut core::", "core::ops::function::",
    "<str>::",      "_ZZSt",          "_ZZNSt",       "_ZZNKSt",
};

// Of Zig's library, which every program compiles anew: its allocators.
constexpr std::string_view kZigAllocators[] = {
    "mem.Allocator.",
    "heap.c_allocator_impl.",
    "heap.SmpAllocator.",
    "heap.PageAllocator.",
    "heap.ArenaAllocator",
    "heap.debug_allocator.",
    "heap.FixedBufferAllocator",
    "posix.mmap",
};

// By which a Rust program hands its requests on to an allocator.
constexpr std::string_view kRustAllocator = " as core::alloc::global::GlobalAlloc>::";

constexpr std::string_view kAllocators[] = {
    "je_",
    "_rjem_",
    "duckdb_je_",
    "mi_",
    "_mi_",
    "tc_",
    "tcmalloc::",
    "snmalloc::",
    "rpmalloc",
    "rprealloc",
    "os::malloc",
    "os::realloc",
    "os::commit_memory",
    "os::pd_commit_memory",
    "Perl_safesys",
    "zmalloc",
    "zcalloc",
    "zrealloc",
    "ztry",
    "new_arena",
    "PyObject_Malloc",
    "PyObject_Realloc",
    "_PyObject_GC_",
    // PostgreSQL's contexts, nginx's pools, ImageMagick's.
    "palloc",
    "repalloc",
    "AllocSet",
    "MemoryContextAlloc",
    "ngx_alloc",
    "ngx_calloc",
    "ngx_memalign",
    "ngx_palloc",
    "ngx_pcalloc",
    "ngx_pnalloc",
    "AcquireAlignedMemory",
    "AcquireQuantumMemory",
    "AcquireMagickMemory",
};

constexpr std::string_view kCommitting[] = {
    "os::commit_memory",
    "ZPhysicalMemoryBacking::map",
    "ZPhysicalMemoryManager::map",
    "runtime.sysMap",
};

// Of each collector: Serial, Parallel, G1, Shenandoah, Z; in JDK 17 and 25.
constexpr std::string_view kJavaHeap[] = {
    "CardGeneration::", "TenuredGeneration::", "DefNewGeneration::",
    "Generation::",     "PSVirtualSpace::",    "G1PageBasedVirtualSpace::",
    "ShenandoahHeap",   "ZPhysicalMemory",     "ZPageAllocator::",
};

template <std::size_t count>
bool begins_with_one_of(const std::string_view (&beginnings)[count],
                        std::string_view name) noexcept {
  // Mostly the first letter decides, without a call.
  return !name.empty() &&
         std::any_of(std::begin(beginnings), std::end(beginnings), [&](std::string_view beginning) {
           return name.front() == beginning.front() && name.starts_with(beginning);
         });
}

}  // namespace

bool is_allocator_function(std::string_view name) noexcept {
  return begins_with_one_of(kAllocators, name);
}

bool is_library_function(std::string_view name) noexcept {
  // A slice's own methods are Rust's; "<[u8] as csv::Row>::parse" is a program's.
  const bool is_of_slice = name.starts_with("<[") && name.find("]>::") < name.find(" as ");
  const bool is_of_allocator = name.starts_with('<') && name.find(kRustAllocator) != name.npos;
  return is_of_slice || is_of_allocator || begins_with_one_of(kBeginnings, name) ||
         begins_with_one_of(kZigAllocators, name);
}

bool commits_for_managed_heap(std::string_view name) noexcept {
  return begins_with_one_of(kCommitting, name);
}

ManagedHeap managed_heap_of(std::string_view name) noexcept {
  if (begins_with_one_of(kJavaHeap, name)) return ManagedHeap::java;
  return name.starts_with("runtime.(*mheap).") ? ManagedHeap::go : ManagedHeap::none;
}

}  // namespace oomrec::names
