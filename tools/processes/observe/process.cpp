// A process's memory. A recorded one tells what it holds, where it would be refused and how it
// ended; of another one only what the kernel and NVML count is known.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/deaths/ending.h"
#include "tools/deaths/present.h"
#include "tools/processes/gpus/nvml.h"
#include "tools/processes/observe/observed.h"
#include "tools/recording/live/session.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::processes {
namespace {

std::string named(const std::string& title, pid_t pid, int device) {
  return fmt::format("{} ({}) on {}", clip(title, 48), pid,
                     device < 0 ? std::string{"the host"} : fmt::format("cuda:{}", device));
}

void take_nearer(Bound& bound, std::string name, std::uint64_t used, std::uint64_t limit) {
  const Bound other{std::move(name), used, limit};
  if (other.percent() > bound.percent() || bound.limit_bytes == 0) bound = other;
}

void take_nearer(Bound& bound, const limit::Nearness& near) {
  if (near.limit_bytes != 0)
    take_nearer(bound, std::string{name_of(near.kind)}, near.sum_bytes(), near.limit_bytes);
}

// --- recorded ------------------------------------------------------------------------------------

class RecordedProcess : public Observed {
 public:
  RecordedProcess(recording::LiveProcess process, int device)
      : process_(std::move(process)), device_(device) {}

  bool look(Look& look) override {
    if (session::life_of(process_.recording->view()) == session::Life::dead && !follow_exec())
      return false;
    look.realtime_ns = system::realtime_ns();
    look_at_memory(look);
    return true;
  }

  std::string title() const override { return named(process_.title(), process_.pid, device_); }
  int device_id() const override { return device_; }
  pid_t pid() const override { return process_.pid; }
  const recording::Recording* recording() const override { return process_.recording.get(); }
  std::string ending() const override { return recording::LiveSession{process_, nullptr}.ending(); }
  std::uint64_t failures() const override {
    return failures_before_ + process_.recording->header().failures_total;
  }

 protected:
  virtual void look_at_memory(Look& look) = 0;
  virtual void begin_again() {}

  recording::LiveProcess process_;
  const int device_;

 private:
  // The process has become another program, which is recorded as well.
  bool follow_exec() {
    if (process_.recording->header().state != static_cast<std::uint32_t>(session::State::replaced))
      return false;
    auto next = recording::live_process(process_.pid);
    if (!next || next->start_ticks != process_.start_ticks) return false;
    failures_before_ = failures();
    process_ = *std::move(next);
    begin_again();
    return true;
  }

  std::uint64_t failures_before_ = 0;  // of the programs that it was before
};

class RecordedHost : public RecordedProcess {
 public:
  explicit RecordedHost(recording::LiveProcess process)
      : RecordedProcess(std::move(process), -1), total_bytes_(host_total_bytes(process_.pid)) {}

  // That of one space is exact; their sum is known for the moments that the recording has kept.
  std::uint64_t recorded_peak() const override {
    const recording::Recording& recording = *process_.recording;
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_on_host(static_cast<Space>(i)))
        peak = std::max<std::uint64_t>(peak, recording.header().spaces[i].peak_bytes);
    for (const recording::Moment& moment : recording::timeline_of(recording).moments)
      peak = std::max(peak, on_host(moment));
    return peak;
  }

 private:
  static std::uint64_t on_host(const recording::Moment& moment) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_on_host(static_cast<Space>(i))) sum += moment.live_bytes[i];
    return sum;
  }

  void look_at_memory(Look& look) override {
    const recording::Recording& recording = *process_.recording;
    const session::Header& header = recording.header();
    look.allocated_bytes = 0;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_on_host(static_cast<Space>(i)))
        look.allocated_bytes += recording.totals(static_cast<Space>(i)).live_bytes;
    look.reserved_bytes = look.allocated_bytes;
    const auto health = deaths::present_health(recording.view(), process_.pid == header.pid);
    look.used_bytes = recording::resident_bytes(process_.pid);
    if (look.used_bytes == 0) look.used_bytes = health->rss_bytes;
    look.total_bytes = total_bytes_;
    look.bound = {"RAM", look.used_bytes, total_bytes_};
    take_nearer(look.bound, limit::nearness_to_kill(*health));
    take_nearer(look.bound, limit::nearness_to_refusal(*health, header.soft_limit_bytes));
  }

  const std::uint64_t total_bytes_;
};

class RecordedGpu : public RecordedProcess {
 public:
  RecordedGpu(recording::LiveProcess process, int device)
      : RecordedProcess(std::move(process), device) {
    find_index();
  }

 private:
  void begin_again() override { find_index(); }

  // NVML counts devices of the machine, the driver those that the process may see.
  void find_index() {
    index_.reset();
    const auto device = figures();
    for (unsigned i = 0, count = gpus_.count(); device && i < count; ++i) {
      const auto seen = gpus_.look(i);
      if (seen && !device->uuid.empty() && seen->uuid == device->uuid) index_ = i;
    }
  }

  std::optional<recording::DeviceFigures> figures() const {
    for (recording::DeviceFigures& row : recording::devices_of(*process_.recording, 0))
      if (row.ordinal == device_) return std::move(row);
    return std::nullopt;
  }

  void look_at_memory(Look& look) override {
    look.allocated_bytes = look.reserved_bytes = look.used_bytes = 0;
    look.inactive_bytes = look.total_bytes = std::nullopt;
    look.bound = {};
    const auto device = figures();
    if (!device) return;  // it has become another program, which has not met the device yet
    if (!index_) find_index();
    look.allocated_bytes = device->torch ? device->torch->allocated_bytes : device->held_bytes;
    look.reserved_bytes = std::max(
        look.allocated_bytes, device->torch ? device->torch->reserved_bytes : device->held_bytes);
    if (device->torch) look.inactive_bytes = look.reserved_bytes - look.allocated_bytes;
    look.used_bytes = device->held_bytes;
    if (device->look) {
      look.used_bytes = device->look->total_bytes - device->look->free_bytes;
      look.total_bytes = device->look->total_bytes;
    }
    if (const auto seen = index_ ? gpus_.look(*index_) : std::nullopt) {
      look.used_bytes = seen->used_bytes;
      look.total_bytes = seen->total_bytes;
    }
    look.used_bytes = std::max(look.used_bytes, device->held_bytes);
    if (look.total_bytes) look.bound = {"device", look.used_bytes, *look.total_bytes};
    if (device->limit_bytes != 0)
      take_nearer(look.bound, "device_limit", device->held_bytes, device->limit_bytes);
  }

  const Gpus gpus_;
  std::optional<unsigned> index_;  // NVML's
};

// --- not recorded --------------------------------------------------------------------------------

std::string command_line(pid_t pid) {
  std::ifstream file{fmt::format("/proc/{}/cmdline", pid)};
  std::string line{std::istreambuf_iterator<char>{file}, {}};
  std::replace(line.begin(), line.end(), '\0', ' ');
  while (line.ends_with(' ')) line.pop_back();
  return line.empty() ? std::string{"a process"} : printable(line);
}

class UnrecordedProcess : public Observed {
 public:
  UnrecordedProcess(pid_t pid, int device)
      : pid_(pid),
        start_ticks_(system::start_ticks(pid)),
        device_(device),
        title_(named(command_line(pid), pid, device)),
        total_bytes_(host_total_bytes(pid)) {}

  bool look(Look& look) override {
    if (start_ticks_ == 0 || system::start_ticks(pid_) != start_ticks_) return false;
    look.realtime_ns = system::realtime_ns();
    if (device_ < 0) {
      look.allocated_bytes = look.used_bytes = recording::resident_bytes(pid_);
      look.total_bytes = total_bytes_;
      look.bound = {"RAM", look.used_bytes, total_bytes_};
    } else if (const auto seen = gpus_.look(static_cast<unsigned>(device_))) {
      look.allocated_bytes = 0;
      for (const GpuProcess& process : seen->processes)
        if (process.pid == pid_) look.allocated_bytes = process.bytes.value_or(0);
      look.used_bytes = std::max(seen->used_bytes, look.allocated_bytes);
      look.total_bytes = seen->total_bytes;
      look.bound = {"device", look.used_bytes, seen->total_bytes};
    }
    look.reserved_bytes = look.allocated_bytes;
    return true;
  }

  std::string title() const override { return title_; }
  int device_id() const override { return device_; }
  pid_t pid() const override { return pid_; }

 private:
  const pid_t pid_;
  const std::uint64_t start_ticks_;
  const int device_;
  const std::string title_;
  const std::uint64_t total_bytes_;
  const Gpus gpus_;
};

// The GPU that the process is on, by its number there; −1: on none.
int gpu_of(pid_t pid) {
  const std::vector<GpuLook> looks = look_at_gpus();
  for (std::size_t i = 0; i < looks.size(); ++i)
    for (const GpuProcess& process : looks[i].processes)
      if (process.pid == pid) return static_cast<int>(i);
  return -1;
}

}  // namespace

std::unique_ptr<Observed> observe_recorded(recording::LiveProcess process,
                                           const DeviceChoice& device) {
  using Kind = DeviceChoice::Kind;
  const std::vector<recording::DeviceFigures> devices =
      recording::devices_of(*process.recording, 0);
  if (device.kind == Kind::host || (device.kind == Kind::any && devices.empty()))
    return std::make_unique<RecordedHost>(std::move(process));
  if (device.kind == Kind::any)
    return std::make_unique<RecordedGpu>(std::move(process), devices.front().ordinal);
  const bool is_there = std::any_of(
      devices.begin(), devices.end(),
      [&](const recording::DeviceFigures& row) { return row.ordinal == device.ordinal; });
  if (is_there) return std::make_unique<RecordedGpu>(std::move(process), device.ordinal);
  std::string there;
  for (const recording::DeviceFigures& row : devices)
    there += (there.empty() ? "" : ", ") + row.label;
  throw Error{Exit::bad_input,
              fmt::format("process {} has not used device {}", process.pid, device.ordinal),
              there.empty() ? "It has used no GPU so far: give --device cpu."
                            : fmt::format("It has used {}; --device cpu is the host.", there)};
}

std::unique_ptr<Observed> observe_unrecorded(pid_t pid, const DeviceChoice& device) {
  using Kind = DeviceChoice::Kind;
  if (device.kind == Kind::gpu) observe_machine(device);  // throws where there is none
  const int ordinal = device.kind == Kind::host  ? -1
                      : device.kind == Kind::gpu ? device.ordinal
                                                 : gpu_of(pid);
  return std::make_unique<UnrecordedProcess>(pid, ordinal);
}

std::unique_ptr<Observed> observe_process(const std::string& word, const DeviceChoice& device) {
  const auto pid = recording::pid_in(word);
  if (pid && system::start_ticks(*pid) != 0) {
    if (auto process = recording::live_process(*pid))
      return observe_recorded(*std::move(process), device);
    return observe_unrecorded(*pid, device);
  }
  return observe_recorded(recording::find_live_process(word), device);
}

}  // namespace oomrec::tools::processes
