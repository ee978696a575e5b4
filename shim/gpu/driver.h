// A vendor's driver as loaded in this process: its functions, and our wrappers of them.
//
// A wrapper calls the definition that the program would have called without us: the next one after
// ours, or the driver's own, or the result of the program's lookup. A function is recognized by its
// address alone; names and versions play no part.
//
// Finding the driver enters the loader. So it is done only in a lookup by the program or in a
// wrapper's first call, never inside a hook of another function. It never loads a driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

using recorder::LookUp;
using session::Vendor;

// How the program enters a wrapper: from outside, or from the next definition, which must not be
// called once more.
enum class Entry : std::uint8_t { first, again };

// One function of the table.
struct Function {
  const char* name;
  void* wrapper;
  std::atomic<void*> next{nullptr};  // called by the wrapper
  std::atomic<void*> own{nullptr};   // the driver's own
  std::atomic<bool> looked_up{false};

  // What the wrapper calls.
  const std::atomic<void*>& target(Entry entry) const noexcept {
    return entry == Entry::again ? own : next;
  }
};

// A function of the driver that we call as a query; its address is stored in `to`.
struct Query {
  const char* name;
  std::atomic<void*>* to;
};

class Driver {
 public:
  constexpr Driver(Vendor vendor, std::span<const char* const> libraries,
                   std::span<Function> functions, std::span<const Query> queries) noexcept
      : vendor_(vendor), libraries_(libraries), functions_(functions), queries_(queries) {}

  // What wrapper `index` calls; nullptr: no driver is loaded.
  void* next(std::size_t index, Entry entry) noexcept {
    const Function& function = functions_[index];
    void* const found = function.target(entry).load(std::memory_order_acquire);
    const bool counted = function.looked_up.load(std::memory_order_relaxed);
    return found != nullptr && counted ? found : find_next(index, entry);
  }

  // Whether a file of one of its names is loaded: without the loader's search for files.
  bool is_mapped() const noexcept;

  // Whether the driver is loaded; searches for it if it has not been found yet.
  bool find() noexcept;
  void find_linked() noexcept;
  std::span<const Function> functions() const noexcept { return functions_; }
  // Of one of its functions; 0: it is not loaded.
  std::uint64_t own_address() const noexcept {
    return reinterpret_cast<std::uint64_t>(queries_.front().to->load(std::memory_order_relaxed));
  }

  // The function of the table with this name; nullptr: none.
  Function* function(const char* name) noexcept;

  // What the program gets instead of `address`, the result of its lookup of `named` (may be
  // nullptr): our wrapper, or `address` itself.
  void* wrapper_for(void* address, Function* named, LookUp) noexcept;

  // Call after a library was closed: it may have been the driver.
  void reset_if_closed() noexcept;

  // After a fork: a driver that the parent has used does not work in the child, so it is no longer
  // queried.
  void stop_queries() noexcept {
    if (queried_.load(std::memory_order_relaxed))
      may_query_.store(false, std::memory_order_relaxed);
  }
  // Call before each query.
  bool may_query() noexcept {
    queried_.store(true, std::memory_order_relaxed);
    return may_query_.load(std::memory_order_relaxed);
  }

 private:
  void* find_next(std::size_t index, Entry entry) noexcept;
  void* open() const noexcept;
  bool adopt(void* library, const HookScope&) noexcept;
  bool adopt_library_of(void* address) noexcept;
  bool is_still_loaded() const noexcept;
  Function* function_at(void* address) noexcept;
  void count_lookup(LookUp) noexcept;

  const Vendor vendor_;
  const std::span<const char* const> libraries_;
  const std::span<Function> functions_;
  const std::span<const Query> queries_;
  std::atomic<bool> found_{false};
  std::atomic<bool> may_query_{true};
  std::atomic<bool> queried_{false};
};

// The wrapper running on this thread. An interposer of another library that comes after it may look
// up the function, get the wrapper, and call it again.
class Calling {
 public:
  Calling(Vendor vendor, std::size_t index) noexcept
      : outer_(t_calling), here_{vendor, static_cast<std::uint32_t>(index) + 1} {
    t_calling = here_;
  }
  ~Calling() { t_calling = outer_; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
  Entry entry() const noexcept { return outer_ == here_ ? Entry::again : Entry::first; }

 private:
  struct Row {
    Vendor vendor;
    std::uint32_t number;  // 0: none
    bool operator==(const Row&) const = default;
  };
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local Row t_calling{};
  const Row outer_;
  const Row here_;
};

extern constinit Driver g_cuda;
extern constinit Driver g_hip;
inline Driver& driver_of(Vendor vendor) noexcept { return vendor == Vendor::cuda ? g_cuda : g_hip; }

// For the hooks of dlclose and fork, and for the constructor.
void start_gpu() noexcept;
void on_library_closed() noexcept;
void on_fork_child() noexcept;

// Called first by each lookup of the program, which enters the loader anyway, with the handle that
// the program passes; may be nullptr.
using BeforeLookup = void(void* library) noexcept;
inline constinit std::atomic<BeforeLookup*> g_before_lookup{nullptr};

// For a program that was attached to: calls `visit` for each function of the drivers that are
// loaded, with the driver's own address and our wrapper.
// loaded_drivers(): a number that changes when one of them comes or goes.
void visit_wrapped(void (*visit)(const char* name, const void* own, const void* wrapper)) noexcept;
std::uint64_t loaded_drivers() noexcept;

}  // namespace oomrec::shim::gpu
