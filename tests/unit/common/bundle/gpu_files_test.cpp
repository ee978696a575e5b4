// The files of a bundle that is about a GPU.
#include <doctest/doctest.h>

#include "tests/unit/common/bundle/gpu_session.h"
#include "tests/unit/common/bundle/scratch.h"

using namespace oomrec;
using namespace oomrec::bundle;
using json = tools::Json;
using session::GpuSession;
using session::TableId;

namespace {

constexpr std::uint64_t kMiB = GpuSession::kMiB, kGiB = GpuSession::kGiB;

struct Written : GpuSession {
  std::filesystem::path write() {
    Cause cause;
    cause.trigger = Trigger::allocation_failed;
    cause.failure = entry;
    cause.alive = false;
    cause.realtime_ns = 1795256102'000'000'000U;
    return scratch.write(view(), cause);
  }
  json file(const char* name) { return Scratch::json(write() / name); }

  // Two blocks on the second device, one of which is freed; one on the first; 1 MiB of the heap.
  void allocate() {
    session::Lane& l = lane(thread, 64);
    const auto give = [&](Space space, std::uint32_t to, std::uint64_t address,
                          std::uint64_t bytes) {
      event(l, EventKind::allocate, 100, Api::cuMemAlloc, space, to, address, bytes, asked);
    };
    give(Space::cuda, second, 0x1000, 3 * kMiB);
    give(Space::cuda, first, 0x2000, 5 * kMiB);
    give(Space::cuda, second, 0x3000, 4 * kMiB);
    event(l, EventKind::free, 200, Api::cuMemFree, Space::cuda, second, 0x1000, 3 * kMiB, 0);
    event(l, EventKind::allocate, 300, 0x4000, kMiB, asked);
    give(Space::cuda_va, second, 0x5000, 64 * kGiB);
    device_at(first).block_bytes = 5 * kMiB;
    device_at(second).block_bytes = 4 * kMiB;
    l.spaces[static_cast<std::size_t>(Space::heap)].usable_allocated_bytes = kMiB;
    l.spaces[static_cast<std::size_t>(Space::cuda)].usable_allocated_bytes = 12 * kMiB;
    l.spaces[static_cast<std::size_t>(Space::cuda)].usable_freed_bytes = 3 * kMiB;
    l.spaces[static_cast<std::size_t>(Space::cuda_va)].usable_allocated_bytes = 64 * kGiB;
  }

  Scratch scratch;
};

std::vector<std::int64_t> column(const json& events, const char* key) {
  std::vector<std::int64_t> values;
  for (const json& event : events) values.push_back(event[key].get<std::int64_t>());
  return values;
}

}  // namespace

TEST_CASE("metadata and manifest name the device, its state and the driver's own error") {
  Written session;
  const auto path = session.write();
  CHECK(path.filename() == "oom_cuda_20261121_101502_001");
  CHECK(Scratch::json(path / "manifest.json")["backend"] == "cuda");
  const json metadata = Scratch::json(path / "metadata.json");
  CHECK(metadata["backend"] == "cuda");
  CHECK(metadata["verdict"]["code"] == "device_out_of_memory");
  const json& request = metadata["request"];
  CHECK(request["api"] == "cuMemAlloc");
  CHECK(request["error"] == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(request["device"] == json{{"kind", "cuda"},
                                  {"id", 1},
                                  {"uuid", "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1"},
                                  {"name", "NVIDIA H100"}});
  const json& evidence = request["device_evidence"];
  CHECK(evidence["used_bytes"] == 80 * kGiB - 410 * kMiB);
  CHECK(evidence["others_bytes"] == 10 * kGiB - 410 * kMiB);
  CHECK(evidence["age_ms"] == 12);
  CHECK(evidence["limit_bytes"].is_null());
  CHECK(evidence["torch_largest_free_bytes"].is_null());
}

TEST_CASE("the bundle names the limit that failed the request") {
  Written session;
  session.refused().flags = session::kFailureByRecorder;
  session.refused().device.limit_bytes = 71 * kGiB;
  CHECK(session.file("metadata.json")["limit"] ==
        json{{"kind", "device"}, {"bytes", 71 * kGiB}, {"used", 70 * kGiB}});
}

TEST_CASE("a bundle's name has the vendor's backend") {
  Written session;
  session.refused().space = static_cast<std::uint8_t>(Space::hip);
  session.refused().api = static_cast<std::uint16_t>(Api::hipMalloc);
  session.refused().device.device = session.device(0, "MI300", session::Vendor::hip);
  const auto path = session.write();
  CHECK(path.filename() == "oom_rocm_20261121_101502_001");
  const json metadata = Scratch::json(path / "metadata.json");
  CHECK(metadata["request"]["error"] == "hipErrorOutOfMemory");
  CHECK(metadata["request"]["device"]["kind"] == "hip");
}

TEST_CASE("PyTorch's memory belongs to its device") {
  Written session;
  session.refused().space = static_cast<std::uint8_t>(Space::torch);
  const auto path = session.write();
  CHECK(path.filename() == "oom_cuda_20261121_101502_001");
  CHECK(Scratch::json(path / "metadata.json")["request"]["error"] == "torch.OutOfMemoryError");
  session.refused().device.device = 0;
  CHECK(session.write().filename() == "oom_cpu_20261121_101502_002");
}

TEST_CASE("a near_limit bundle of a device has the device's backend") {
  Written session;
  session.header().near_device = session.second;
  session.device_at(session.second).free_bytes = kGiB;
  Cause cause;
  cause.trigger = Trigger::near_limit;
  cause.alive = false;
  const auto path = session.scratch.write(session.view(), cause);
  CHECK(Scratch::json(path / "manifest.json")["backend"] == "cuda");
  CHECK(Scratch::json(path / "metadata.json")["limit"]["kind"] == "device");
}

TEST_CASE("each device and the host have running totals") {
  Written session;
  session.allocate();
  const json events = session.file("events.json");
  REQUIRE(events.size() == 7);
  CHECK(column(events, "device_id") == std::vector<std::int64_t>{1, 0, 1, 1, -1, 1, 1});
  CHECK(column(events, "memory_allocated") ==
        std::vector<std::int64_t>{3 << 20, 5 << 20, 7 << 20, 4 << 20, 1 << 20, 4 << 20, 4 << 20});
  CHECK(column(events, "memory_reserved") == column(events, "memory_allocated"));
  CHECK(events[3]["memory_change"] == -(3 << 20));
  CHECK(events[3]["api"] == "cuMemFree");
  CHECK(events[3]["backend"] == "cuda");
  CHECK(events[4]["backend"] == "cpu");
  CHECK(events[5]["space"] == "cuda_va");
  CHECK(events[5]["memory_change"] == 0);
  CHECK(events[5]["size"] == 64 * kGiB);
  CHECK(events[6]["result"] == "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_CASE(
    "PyTorch's totals take precedence over the driver's; pools reserve more than is allocated") {
  Written session;
  session.allocate();
  session.device_at(session.first).pool_used_bytes = kMiB;
  session.device_at(session.first).pool_reserved_bytes = 3 * kMiB;
  session.device_at(session.second).torch_allocated_bytes = 2 * kMiB;
  session.device_at(session.second).torch_reserved_bytes = 4 * kMiB;
  const json events = session.file("events.json");
  CHECK(events[1]["memory_allocated"] == 6 * kMiB);
  CHECK(events[1]["memory_reserved"] == 8 * kMiB);
  CHECK(events[6]["memory_allocated"] == 2 * kMiB);
  CHECK(events[6]["memory_reserved"] == 4 * kMiB);
}

TEST_CASE("environment.json lists the GPUs and the driver") {
  Written session;
  session.device_at(session.first).limit_bytes = 4 * kGiB;
  session.device_at(session.first).peak_bytes = kGiB;
  const json environment = session.file("environment.json");
  REQUIRE(environment["gpus"].size() == 2);
  CHECK(environment["gpus"][0] == json{{"vendor", "cuda"},
                                       {"ordinal", 0},
                                       {"uuid", "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0"},
                                       {"name", "NVIDIA H100"},
                                       {"driver_version", "13.5"},
                                       {"driver_path", "/usr/lib/libcuda.so.1"},
                                       {"total_bytes", 80 * kGiB},
                                       {"free_bytes", 8 * kGiB},
                                       {"limit_bytes", 4 * kGiB},
                                       {"counted_bytes", 0},
                                       {"peak_bytes", kGiB}});
  CHECK(environment["versions"]["driver"] == "CUDA 13.5");
  session::SessionImage without;
  Cause cause;
  cause.alive = false;
  CHECK(Scratch::json(session.scratch.write(without.view(), cause) / "environment.json")["gpus"]
            .is_null());
}

TEST_CASE("the recording has the devices; a smaller one leaves out the single blocks") {
  Written session;
  session.allocate();
  session.add<session::DeviceBlock>(TableId::device_blocks).bytes = 4 * kMiB;
  session.add<session::DevicePoint>(TableId::device_points).time_ns = 77;
  session.add<session::Tally>(TableId::api_tallies).count = 9;
  for (std::uint32_t i = 1; i <= 3000; ++i)
    session.holder(session.stack({session::native_frame(1, i)}), Space::cuda, 1000 + i, 1);
  bool small = false;
  SUBCASE("whole") {}
  SUBCASE("smaller") {
    small = true;
    session.scratch.max_total_bytes = 300 * 1024;
  }
  const auto path = session.write();
  CHECK(Scratch::json(path / "manifest.json")["reduced"] ==
        (small ? json("largest_stacks") : json()));
  const std::string bytes = Scratch::text(path / "recording.oomrec");
  const session::View view{session::Bytes::contiguous(bytes.data(), bytes.size())};
  REQUIRE(view.problem() == session::Problem::none);
  session::Device device;
  REQUIRE(view.read(TableId::devices, session.second, device));
  CHECK(device.ordinal == 1);
  CHECK(device.block_bytes == static_cast<std::int64_t>(4 * kMiB));
  session::DevicePoint point;
  REQUIRE(view.read(TableId::device_points, 1, point));
  CHECK(point.time_ns == 77);
  session::Tally tally;
  REQUIRE(view.read(TableId::api_tallies, 1, tally));
  CHECK(tally.count == 9);
  CHECK(view.count(TableId::device_blocks) == (small ? 0 : 2));
  session::Failure failure{};
  REQUIRE(view.read(TableId::failures, session.entry, failure));
  CHECK(failure.device.counted_bytes == 70 * kGiB);
  CHECK(view.header().drivers[0].version == 13050);
  CHECK(view.string(view.header().drivers[0].path) == "/usr/lib/libcuda.so.1");
}
