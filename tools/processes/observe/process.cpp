// The memory of a process. A recording has live bytes, limits and the outcome; for unrecorded
// processes there are only the figures of the kernel and of NVML.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/deaths/current_health.h"
#include "tools/deaths/ending.h"
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

void take_if_nearer(Bound& bound, std::string name, std::uint64_t used, std::uint64_t limit) {
  const Bound other{std::move(name), used, limit};
  if (other.percent() > bound.percent() || bound.limit_bytes == 0) bound = other;
}

void take_if_nearer(Bound& bound, const limit::LimitUsage& near) {
  if (near.limit_bytes != 0)
    take_if_nearer(bound, std::string{name_of(near.kind)}, near.used_bytes, near.limit_bytes);
}

class RecordedProcess : public Observed {
 public:
  RecordedProcess(recording::LiveProcess process, int device)
      : process_(std::move(process)), device_(device) {}

  bool sample(MemorySample& sample) override {
    if (session::life_of(process_.recording->view()) == session::Life::dead && !follow_exec())
      return false;
    sample.realtime_ns = system::realtime_ns();
    sample_memory(sample);
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
  virtual void sample_memory(MemorySample& sample) = 0;
  virtual void on_exec() {}

  recording::LiveProcess process_;
  const int device_;

 private:
  // Switches to the new recording if the process has executed another recorded program.
  bool follow_exec() {
    if (process_.recording->header().state != static_cast<std::uint32_t>(session::State::replaced))
      return false;
    auto next = recording::live_process(process_.pid);
    if (!next || next->start_ticks != process_.start_ticks) return false;
    failures_before_ = failures();
    process_ = *std::move(next);
    on_exec();
    return true;
  }

  std::uint64_t failures_before_ = 0;  // of the programs before the last exec
};

class RecordedHost : public RecordedProcess {
 public:
  explicit RecordedHost(recording::LiveProcess process)
      : RecordedProcess(std::move(process), -1), total_bytes_(host_total_bytes(process_.pid)) {}

  // The peak of one space is exact. Their sum is known only at the recording's checkpoints.
  std::uint64_t recorded_peak() const override {
    const recording::Recording& recording = *process_.recording;
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_on_host(static_cast<Space>(i)))
        peak = std::max<std::uint64_t>(peak, recording.header().spaces[i].peak_bytes);
    for (const recording::Moment& moment : recording::timeline_of(recording).moments)
      peak = std::max(peak, recording::host_bytes_of(moment));
    return peak;
  }

 private:
  void sample_memory(MemorySample& sample) override {
    const recording::Recording& recording = *process_.recording;
    const session::Header& header = recording.header();
    sample.allocated_bytes = sample.reserved_bytes = recording.host_bytes();
    const auto health = process_.pid == header.pid ? deaths::current_health(recording.view())
                                                   : deaths::recorded_health(recording.view());
    sample.used_bytes = recording::resident_bytes(process_.pid);
    if (sample.used_bytes == 0) sample.used_bytes = health->rss_bytes;
    sample.total_bytes = total_bytes_;
    sample.bound = {"RAM", sample.used_bytes, total_bytes_};
    take_if_nearer(sample.bound, limit::usage_of_killing_limit(*health));
    take_if_nearer(sample.bound, limit::usage_of_failing_limit(*health, header.soft_limit_bytes));
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
  void on_exec() override { find_index(); }

  // NVML numbers all devices of the machine, the driver only those that are visible to the process.
  void find_index() {
    index_.reset();
    const auto device = figures();
    for (unsigned i = 0, count = gpus_.count(); device && i < count; ++i) {
      const auto gpu = gpus_.sample(i);
      if (gpu && !device->uuid.empty() && gpu->uuid == device->uuid) index_ = i;
    }
  }

  std::optional<recording::DeviceFigures> figures() const {
    for (recording::DeviceFigures& row : recording::devices_of(*process_.recording, 0))
      if (row.ordinal == device_) return std::move(row);
    return std::nullopt;
  }

  void sample_memory(MemorySample& sample) override {
    sample.allocated_bytes = sample.reserved_bytes = sample.used_bytes = 0;
    sample.inactive_bytes = sample.total_bytes = std::nullopt;
    sample.bound = {};
    const auto device = figures();
    if (!device) return;  // after an exec: the new program has not used the device yet
    if (!index_) find_index();
    sample.allocated_bytes = device->torch ? device->torch->allocated_bytes : device->held_bytes;
    sample.reserved_bytes = std::max(
        sample.allocated_bytes, device->torch ? device->torch->reserved_bytes : device->held_bytes);
    if (device->torch) sample.inactive_bytes = sample.reserved_bytes - sample.allocated_bytes;
    sample.used_bytes = device->held_bytes;
    if (device->driver_sample) {
      sample.used_bytes = device->driver_sample->total_bytes - device->driver_sample->free_bytes;
      sample.total_bytes = device->driver_sample->total_bytes;
    }
    if (const auto gpu = index_ ? gpus_.sample(*index_) : std::nullopt) {
      sample.used_bytes = gpu->used_bytes;
      sample.total_bytes = gpu->total_bytes;
    }
    sample.used_bytes = std::max(sample.used_bytes, device->held_bytes);
    if (sample.total_bytes) sample.bound = {"device", sample.used_bytes, *sample.total_bytes};
    if (device->limit_bytes != 0)
      take_if_nearer(sample.bound, "device_limit", device->held_bytes, device->limit_bytes);
  }

  const Gpus gpus_;
  std::optional<unsigned> index_;  // NVML's
};

std::string command_line(pid_t pid) {
  std::string line = mask_secrets(process_file(system::thread_with_memory(pid), "cmdline"));
  std::ranges::replace(line, '\0', ' ');
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

  bool sample(MemorySample& sample) override {
    if (start_ticks_ == 0 || system::start_ticks(pid_) != start_ticks_) return false;
    sample.realtime_ns = system::realtime_ns();
    if (device_ < 0) {
      sample.allocated_bytes = sample.used_bytes = recording::resident_bytes(pid_);
      sample.total_bytes = total_bytes_;
      sample.bound = {"RAM", sample.used_bytes, total_bytes_};
    } else if (const auto gpu = gpus_.sample(static_cast<unsigned>(device_))) {
      sample.allocated_bytes = 0;
      for (const GpuProcess& process : gpu->processes)
        if (process.pid == pid_) sample.allocated_bytes = process.bytes.value_or(0);
      sample.used_bytes = std::max(gpu->used_bytes, sample.allocated_bytes);
      sample.total_bytes = gpu->total_bytes;
      sample.bound = {"device", sample.used_bytes, gpu->total_bytes};
    }
    sample.reserved_bytes = sample.allocated_bytes;
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

// The index of the GPU that the process uses; −1: none.
int gpu_of(pid_t pid) {
  const std::vector<GpuSample> samples = sample_gpus();
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (const GpuProcess& process : samples[i].processes)
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
  const bool has_device = std::ranges::any_of(
      devices, [&](const recording::DeviceFigures& row) { return row.ordinal == device.ordinal; });
  if (has_device) return std::make_unique<RecordedGpu>(std::move(process), device.ordinal);
  std::string labels;
  for (const recording::DeviceFigures& row : devices)
    labels += (labels.empty() ? "" : ", ") + row.label;
  throw Error{Exit::bad_input,
              fmt::format("process {} has not used device {}", process.pid, device.ordinal),
              labels.empty() ? "It has used no GPU so far: give --device cpu."
                             : fmt::format("It has used {}; --device cpu is the host.", labels)};
}

std::unique_ptr<Observed> observe_unrecorded(pid_t pid, const DeviceChoice& device) {
  using Kind = DeviceChoice::Kind;
  if (device.kind == Kind::gpu) observe_machine(device);  // throws if there is no such device
  const int ordinal = device.kind == Kind::host  ? -1
                      : device.kind == Kind::gpu ? device.ordinal
                                                 : gpu_of(pid);
  return std::make_unique<UnrecordedProcess>(pid, ordinal);
}

std::unique_ptr<Observed> observe_process(const std::string& word, const DeviceChoice& device) {
  const auto pid = recording::parse_pid(word);
  if (pid && system::start_ticks(*pid) != 0) {
    if (auto process = recording::live_process(*pid))
      return observe_recorded(*std::move(process), device);
    return observe_unrecorded(*pid, device);
  }
  return observe_recorded(recording::find_live_process(word), device);
}

}  // namespace oomrec::tools::processes
