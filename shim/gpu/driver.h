// A vendor's driver as it is loaded in this process: where its functions are, and which of ours
// stand before them.
//
// A wrapper calls the definition that the program would have met without us: the next one after
// ours, else the driver's own, else what a look-up of the program's returned. What a program is
// given for a function is found by its address alone; names and versions play no part.
//
// Looking for the driver enters the loader: never inside a hook of another function, only in a
// look-up of the program's own or in a wrapper's first call. A driver is never loaded for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "recorder/devices/registry.h"

namespace oomrec::shim::gpu {

using recorder::LookUp;
using session::Vendor;

// One function of the table.
struct Function {
  const char* name;
  void* wrapper;
  std::atomic<void*> next{nullptr};  // what the wrapper calls
  std::atomic<void*> own{nullptr};   // the driver's
  std::atomic<bool> looked_up{false};
};

// A function of the driver that we ask something; its pointer goes to `to`.
struct Query {
  const char* name;
  std::atomic<void*>* to;
};

class Driver {
 public:
  constexpr Driver(Vendor vendor, std::span<const char* const> libraries,
                   std::span<Function> functions, std::span<const Query> queries) noexcept
      : vendor_(vendor), libraries_(libraries), functions_(functions), queries_(queries) {}

  // What wrapper `index` calls; nullptr: no driver is loaded. `again`: who is next has called the
  // wrapper, and must not be called once more.
  void* next(std::size_t index, bool again) noexcept {
    const Function& function = functions_[index];
    void* const found = (again ? function.own : function.next).load(std::memory_order_acquire);
    const bool told = function.looked_up.load(std::memory_order_relaxed);
    return found != nullptr && told ? found : find_next(index, again);
  }

  // Whether the driver is loaded: looks for it if it has not been found yet.
  bool find() noexcept;
  void find_linked() noexcept;

  // The function of the table that has this name; nullptr: none.
  Function* function(const char* name) noexcept;

  // What the program gets for `address`, which a look-up of `name` (may be nullptr) returned.
  void* given_for(void* address, Function* named, LookUp) noexcept;

  // A library was closed: perhaps it was this one.
  void forget_if_closed() noexcept;

  // After a fork: a driver that the parent has used is of no use to the child, and is asked
  // nothing.
  void stop_queries() noexcept {
    if (queried_.load(std::memory_order_relaxed))
      may_query_.store(false, std::memory_order_relaxed);
  }
  // Before each question.
  bool may_query() noexcept {
    queried_.store(true, std::memory_order_relaxed);
    return may_query_.load(std::memory_order_relaxed);
  }

 private:
  void* find_next(std::size_t index, bool again) noexcept;
  void* open() const noexcept;
  bool adopt(void* library, const HookScope&) noexcept;
  bool adopt_library_of(void* address) noexcept;
  bool still_there() const noexcept;
  Function* function_at(void* address) noexcept;
  void tell(Function&, LookUp) noexcept;

  const Vendor vendor_;
  const std::span<const char* const> libraries_;
  const std::span<Function> functions_;
  const std::span<const Query> queries_;
  std::atomic<bool> found_{false};
  std::atomic<bool> may_query_{true};
  std::atomic<bool> queried_{false};
};

// A wrapper at work on this thread. Another library's interposer that stands behind it may look the
// function up, is given the wrapper, and calls it again.
class Calling {
 public:
  Calling(Vendor vendor, std::size_t index) noexcept
      : outer_(t_calling), here_{vendor, static_cast<std::uint32_t>(index) + 1} {
    t_calling = here_;
  }
  ~Calling() { t_calling = outer_; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
  bool again() const noexcept { return outer_ == here_; }

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

}  // namespace oomrec::shim::gpu
