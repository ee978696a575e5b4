// Told by the kernel when memory is what the machine waits for (PSI), or by whoever set
// $MEMORY_PRESSURE_WATCH for a service (systemd.resource-control(5)).
#pragma once

namespace oomrec::tools::service {

class PressureTrigger {
 public:
  // Memory is short when some wait 200 ms of 2 s, the window an unprivileged process may have.
  PressureTrigger();
  ~PressureTrigger();
  PressureTrigger(const PressureTrigger&) = delete;
  PressureTrigger& operator=(const PressureTrigger&) = delete;

  // To be polled for events(); −1: the kernel has no triggers for us, and is_high() must be asked.
  int descriptor() const { return descriptor_; }
  short events() const { return events_; }

  // After an event: takes it.
  void take() const;

  // Where there is no descriptor: some have waited 10 % of the last 10 s.
  bool is_high() const;

 private:
  bool watch_named(const char* path);

  int descriptor_ = -1;
  short events_ = 0;
  bool stream_ = false;  // events are bytes to be read
  bool off_ = false;     // the variable says so
};

}  // namespace oomrec::tools::service
