// The verdict on a failed request of GPU memory: its figures and its words.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "common/text/device_text.h"
#include "common/verdict/verdict.h"
#include "recorder/helper/report.h"
#include "tests/unit/common/bundle/gpu_session.h"
#include "tests/unit/common/verdict/page.h"

using namespace oomrec;
using namespace oomrec::verdict;
using session::DeviceEvidence;
using session::Failure;
using session::GpuSession;

namespace {

constexpr std::uint64_t kMiB = GpuSession::kMiB, kGiB = GpuSession::kGiB;

struct Refused : GpuSession {
  verdict::Verdict verdict(Trigger trigger = Trigger::allocation_failed) {
    return verdict::verdict_of(view(), trigger, entry);
  }
  std::string evidence() {
    const verdict::Verdict v = verdict();
    std::string lines;
    for (unsigned i = 0; i < v.evidence_count; ++i) lines += std::string{v.evidence[i]} + "\n";
    return lines;
  }
  std::string report() {
    char buffer[2048];
    text::Text text{buffer, sizeof buffer};
    const auto work = std::make_unique<bundle::Workspace>();
    bundle::Cause cause;
    cause.trigger = Trigger::allocation_failed;
    cause.failure = entry;
    helper::report_failure(OutsideHooks::in_hook(), text, view(), cause, verdict(), *work);
    return std::string{text.view()};
  }
  DeviceEvidence& at = refused().device;
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a full device: what was free, and what used the rest") {
  Refused session;
  show("a full device", session.verdict());

  SUBCASE("managed memory counts as this process', wherever it is") {
    session.at.managed_bytes = 5 * kGiB;
    show("the same with 5 GiB of managed memory", session.verdict());
    session.at.managed_bytes = 50 * kGiB;
    show("the same with 50 GiB of managed memory", session.verdict());
  }
  SUBCASE("a request larger than the device") {
    session.refused().bytes = 81 * kGiB;
    show("a request larger than the device", session.verdict());
  }
  SUBCASE("a device without figures from the driver") {
    session.at.total_bytes = session.at.free_bytes = 0;
    show("a device without figures from the driver", session.verdict());
    CHECK_FALSE(has(session.evidence(), "the driver reported"));
  }
  SUBCASE("an unknown device") {
    session.at = {};
    show("an unknown device", session.verdict());
  }
  SUBCASE("a call without a size") {
    session.refused().bytes = 0;
    session.refused().api = static_cast<std::uint16_t>(Api::cuCtxCreate);
    show("a context, whose size nobody knows", session.verdict());
  }
  SUBCASE("another vendor") {
    const std::uint32_t hip = session.device(0, "", session::Vendor::hip);
    session.refused().space = static_cast<std::uint8_t>(Space::hip);
    session.refused().api = static_cast<std::uint16_t>(Api::hipMalloc);
    session.at.device = hip;
    show("a full device of AMD's", session.verdict());
  }
}

TEST_CASE("the user's limit, and how much of it was left") {
  Refused session;
  session.refused().flags = session::kFailureByRecorder;
  session.at.limit_bytes = 71 * kGiB;
  show("--limit-gpu is reached", session.verdict(Trigger::soft_limit));
  session.at.limit_bytes = kGiB;
  show("a request larger than --limit-gpu", session.verdict());

  // A limit that was not reached is only evidence.
  session.refused().flags = 0;
  session.at.limit_bytes = 80 * kGiB;
  show("a full device below --limit-gpu", session.verdict());
}

TEST_CASE("enough is free in PyTorch's reserve, but in pieces") {
  Refused session;
  session.at.torch_reserved_bytes = 8 * kGiB;
  session.at.torch_allocated_bytes = 5 * kGiB;
  session.at.torch_largest_free_bytes = 900 * kMiB;
  show("3 GiB free in PyTorch's reserve, in smaller pieces", session.verdict());

  SUBCASE("a half is critical, a fifth is not mentioned") {
    session.at.torch_allocated_bytes = 4 * kGiB;
    show("half of PyTorch's reserve", session.verdict());
    session.at.torch_allocated_bytes = session.at.torch_reserved_bytes / 5 * 4;
    CHECK(has(session.evidence(), "fragmentation_ratio 0.20\n"));
    CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
    CHECK_FALSE(has(session.evidence(), "try: "));
  }
  SUBCASE("a piece that is large enough or unknown explains nothing") {
    session.at.torch_largest_free_bytes = 2 * kGiB;
    CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
    session.at.torch_largest_free_bytes = session::kUnlimited;
    CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
    CHECK_FALSE(has(session.evidence(), "largest free piece"));
  }
  SUBCASE("the user's limit comes first") {
    session.refused().flags = session::kFailureByRecorder;
    session.at.limit_bytes = 70 * kGiB;
    CHECK(session.verdict().code == VerdictCode::device_limit);
  }
}

TEST_CASE("enough is free in memory pools") {
  Refused session;
  session.at.pool_reserved_bytes = 6 * kGiB;
  session.at.pool_used_bytes = 4 * kGiB;
  show("2 GiB free in memory pools", session.verdict());
  session.at.pool_used_bytes += 1;
  CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
}

TEST_CASE("failures that are not due to a device's memory") {
  Refused session;
  SUBCASE("the driver's host memory") {
    session.refused().space = static_cast<std::uint8_t>(Space::cuda_host);
    session.refused().rss_bytes = kGiB;
    session.refused().ram_bytes = 16 * kGiB;
    show("the driver's host memory", session.verdict());
  }
  SUBCASE("address space") {
    session.refused().space = static_cast<std::uint8_t>(Space::cuda_va);
    show("the driver's address space", session.verdict());
  }
  SUBCASE("--fail") {
    session.refused().flags = session::kFailureInjected;
    session.refused().rule = session.string("cuMemAlloc:nth=2");
    show("a rule of --fail for a device's memory", session.verdict());
  }
  SUBCASE("PyTorch's own allocator") {
    session.refused().space = static_cast<std::uint8_t>(Space::torch);
    session.refused().api = static_cast<std::uint16_t>(Api::reportOutOfMemoryToProfiler);
    session.refused().error = 0;
    show("PyTorch's own allocator gave up", session.verdict());
    CHECK_FALSE(has(session.evidence(), "the call's result"));
  }
}

TEST_CASE("the report on stderr names the device's state once, and its holders") {
  Refused session;
  session.holder(session.asked, Space::heap, 9 * kGiB, 1);
  const std::uint32_t here = session.holder(session.asked, Space::cuda, 12 * kGiB, 3);
  session.block(session.first, here, 9 * kGiB);
  session.block(session.second, here, 2 * kGiB);
  session.block(session.second, here, kGiB);
  session.holder(session.asked, Space::cuda_va, 20 * kGiB, 1);
  session.holder(session.asked, Space::torch, kGiB, 7);
  CHECK(has(session.report(), "largest holder: 3.0 GiB in 2 blocks from libtorch.so\n"));
  CHECK_FALSE(has(session.report(), "oomrec: cuda:1"));
  session.device_at(session.second).torch_reserved_bytes = 2 * kGiB;
  CHECK(has(session.report(), "largest holder: 1.0 GiB in 7 blocks"));

  session.refused().flags = session::kFailureByRecorder;
  session.at.limit_bytes = 71 * kGiB;
  CHECK(has(session.report(),
            "\noomrec: cuda:1 (NVIDIA H100): 410.0 MiB of 80.0 GiB were free; this process "
            "holds 70.0 GiB, others or the runtime 9.6 GiB\n"));
}

TEST_CASE("a device near a limit is named with that limit") {
  Refused session;
  session.header().near_device = session.second;
  session::Device& device = session.device_at(session.second);
  device.block_bytes = 60 * kGiB;
  device.free_bytes = 4 * kGiB;
  show("a device at 95 %", session.verdict(Trigger::near_limit));
  device.limit_bytes = 61 * kGiB;
  show("--limit-gpu at 98 %", session.verdict(Trigger::near_limit));
}

TEST_CASE("a crash after a failed request of a device: only host pointers count") {
  Refused session;
  session::Crash& crash = session.header().crash;
  crash.signal = 11;
  crash.code = 1;
  crash.address = 64;
  crash.failure = session.entry;
  crash.failure_bytes = 2 * kGiB;
  crash.failure_time_ns = session.refused().time_ns;
  crash.time_ns = crash.failure_time_ns + 1'000'000;
  verdict::Verdict verdict = session.verdict(Trigger::crash);
  show("SIGSEGV after a failed request of device memory", verdict);

  for (const auto& [api, space] : {std::pair{Api::cuMemAllocManaged, Space::cuda},
                                   std::pair{Api::hipMallocManaged, Space::hip},
                                   std::pair{Api::cuMemAllocHost, Space::cuda_host}}) {
    session.refused().api = static_cast<std::uint16_t>(api);
    session.refused().space = static_cast<std::uint8_t>(space);
    verdict = session.verdict(Trigger::crash);
    CHECK(verdict.code == VerdictCode::null_dereference);
    CHECK(
        has(verdict.summary, " refused 2.0 GiB: the program may have used the NULL it was given"));
  }
  crash.failure_bytes = 0;  // for example, of a context
  crash.address = 0;
  CHECK(session.verdict(Trigger::crash).code == VerdictCode::crashed);
}

TEST_CASE("an old recording has no devices") {
  Refused session;
  session.header().tables[static_cast<std::uint32_t>(session::TableId::devices)].entry_bytes = 0;
  session.header().version = 3;
  session.at = {};
  session::Device device;
  CHECK_FALSE(text::read_device(session.view(), 1, device));
  show("a recording without devices", session.verdict());
}
