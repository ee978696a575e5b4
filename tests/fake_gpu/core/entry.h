// The door of every function of a front end: counts the call, delays or refuses it as the rules
// say, takes the lock of the driver, and allocates a few bytes as drivers do, so that the hooks of
// a recorder run inside the driver, under its lock.
#pragma once

#include <atomic>

namespace fake_gpu {

// One exported function.
struct Function {
  const char* name;
  int since;      // the API version that introduced this form, such as 3020
  void* address;  // the one exported, whoever interposes the name
  std::atomic<unsigned long> calls;
};

// All functions of the front end that is linked in.
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

  // What the function returns at once; success: it does its work.
  int refusal() const { return refusal_; }

 private:
  int refusal_ = 0;
};

// Leaves the driver while an exported function is called from inside one.
class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
};

// Every result passes here: HIP tells the thread's last failure when asked.
int note(int result);
int last_failure();
void forget_failure();

// cuInit; a child of fork has to start anew.
void start();

}  // namespace fake_gpu
