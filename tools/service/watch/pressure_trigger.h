// Detects memory pressure with a PSI trigger of the kernel or, in a systemd service, with the file
// in $MEMORY_PRESSURE_WATCH (systemd.resource-control(5)).
#pragma once

namespace oomrec::tools::service {

class PressureTrigger {
 public:
  // Pressure: some tasks waited for memory for 200 ms out of 2 s, the window that an unprivileged
  // process may use.
  PressureTrigger();
  ~PressureTrigger();
  PressureTrigger(const PressureTrigger&) = delete;
  PressureTrigger& operator=(const PressureTrigger&) = delete;

  // Poll for events(); −1: the kernel offers no trigger: call is_high() instead.
  int descriptor() const { return descriptor_; }
  short events() const { return events_; }

  // Consumes a pending event.
  void acknowledge() const;

  // Without a descriptor: whether some tasks waited for 10 % of the last 10 s.
  bool is_high() const;

 private:
  bool open_named(const char* path);

  int descriptor_ = -1;
  short events_ = 0;
  bool stream_ = false;    // events are bytes to read
  bool disabled_ = false;  // by the variable
};

}  // namespace oomrec::tools::service
