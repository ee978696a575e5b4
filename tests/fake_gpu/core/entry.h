// The entry of every function of a front end: counts the call, delays or fails it by the rules,
// takes the driver's lock, and allocates a few bytes like real drivers, so that a recorder's hooks
// run inside the driver, under its lock.
#pragma once

#include <atomic>

namespace fake_gpu {

// One exported function.
struct Function {
  const char* name;
  int since;      // the API version that introduced this form, such as 3020
  void* address;  // the exported one, even if the name is interposed
  std::atomic<unsigned long> calls;
};

// All functions of the linked front end.
struct Functions {
  Function* first;
  unsigned count;
};
extern const Functions exported;

enum class Needs { nothing, start, context };

class Entry {
 public:
  Entry(Function& function, Needs needs);
  ~Entry();
  Entry(const Entry&) = delete;

  // What the function returns immediately; success: it proceeds.
  int failure() const { return failure_; }

 private:
  int failure_ = 0;
};

// Leaves the driver while an exported function is called from inside one.
class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
};

// Every result passes here: HIP keeps the thread's last failure for queries.
int note(int result);
int last_failure();
void forget_failure();

// cuInit. A forked child is not initialized.
void start();

}  // namespace fake_gpu
