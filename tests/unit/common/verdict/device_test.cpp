// The verdict on a failed request of GPU memory: its figures and its words.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "common/text/device_text.h"
#include "common/verdict/verdict.h"
#include "recorder/helper/report.h"
#include "tests/unit/common/bundle/gpu_session.h"

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
  std::string summary() { return verdict().summary; }
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
  CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
  CHECK(session.verdict().limit.kind == LimitKind::device);
  CHECK(session.verdict().limit.bytes == 80 * kGiB);
  CHECK(session.verdict().limit.used_bytes == 80 * kGiB - 410 * kMiB);
  CHECK(session.summary() ==
        "python (libtorch) asked cuMemAlloc for 2.0 GiB on cuda:1 (NVIDIA H100) and was refused: "
        "410.0 MiB of 80.0 GiB were free; this process holds 70.0 GiB, others or the runtime 9.6 "
        "GiB");
  CHECK(has(session.evidence(), "the call's result was CUDA_ERROR_OUT_OF_MEMORY\n"));
  CHECK(has(session.evidence(), "the driver reported 12 ms before: 410.0 MiB free of 80.0 GiB\n"));

  SUBCASE("managed memory counts as this process', wherever it is") {
    session.at.managed_bytes = 5 * kGiB;
    CHECK(has(session.summary(), "others or the runtime 4.6 GiB"));
    CHECK(has(session.evidence(), "holds 70.0 GiB and 5.0 GiB of managed memory; used by others"));
    session.at.managed_bytes = 50 * kGiB;
    CHECK(has(session.summary(), "others or the runtime 0 bytes"));
  }
  SUBCASE("a request larger than the device") {
    session.refused().bytes = 81 * kGiB;
    CHECK(has(session.summary(), "refused: that is more than the device has; 410.0 MiB of"));
  }
  SUBCASE("a device without figures from the driver") {
    session.at.total_bytes = session.at.free_bytes = 0;
    CHECK(session.summary() ==
          "python (libtorch) asked cuMemAlloc for 2.0 GiB on cuda:1 (NVIDIA H100) and was "
          "refused: this process holds 70.0 GiB");
    CHECK(session.verdict().limit.kind == LimitKind::none);
    CHECK_FALSE(has(session.evidence(), "the driver reported"));
  }
  SUBCASE("an unknown device") {
    session.at = {};
    CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
    CHECK(
        has(session.summary(), "asked cuMemAlloc for 2.0 GiB and was refused: this process holds"));
  }
  SUBCASE("a call without a size") {
    session.refused().bytes = 0;
    session.refused().api = static_cast<std::uint16_t>(Api::cuCtxCreate);
    CHECK(has(session.summary(),
              "python (libtorch) called cuCtxCreate on cuda:1 (NVIDIA H100) and was"));
    CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
  }
  SUBCASE("another vendor") {
    const std::uint32_t hip = session.device(0, "", session::Vendor::hip);
    session.refused().space = static_cast<std::uint8_t>(Space::hip);
    session.refused().api = static_cast<std::uint16_t>(Api::hipMalloc);
    session.at.device = hip;
    CHECK(
        has(session.summary(), "asked hipMalloc for 2.0 GiB on hip:0 and was refused: 410.0 MiB"));
    CHECK(has(session.evidence(), "result was hipErrorOutOfMemory\n"));
  }
}

TEST_CASE("the user's limit, and how much of it was left") {
  Refused session;
  session.refused().flags = session::kFailureByRecorder;
  session.at.limit_bytes = 71 * kGiB;
  verdict::Verdict verdict = session.verdict(Trigger::soft_limit);
  CHECK(verdict.code == VerdictCode::device_limit);
  CHECK(verdict.limit.kind == LimitKind::device);
  CHECK(verdict.limit.bytes == 71 * kGiB);
  CHECK(verdict.limit.used_bytes == 70 * kGiB);
  CHECK(has(verdict.summary,
            "refused: --limit-gpu of 71.0 GiB is reached (this process holds 70.0 GiB)"));
  CHECK(has(session.evidence(), "counted 70.0 GiB + request 2.0 GiB > --limit-gpu 71.0 GiB\n"));
  session.at.limit_bytes = kGiB;
  CHECK(has(session.summary(), "refused: that is more than --limit-gpu of 1.0 GiB (this process"));

  // A limit that was not reached is only evidence.
  session.refused().flags = 0;
  session.at.limit_bytes = 80 * kGiB;
  CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
  CHECK(has(session.evidence(), "counted 70.0 GiB + request 2.0 GiB <= --limit-gpu 80.0 GiB\n"));
}

TEST_CASE("enough is free in PyTorch's reserve, but in pieces") {
  Refused session;
  session.at.torch_reserved_bytes = 8 * kGiB;
  session.at.torch_allocated_bytes = 5 * kGiB;
  session.at.torch_largest_free_bytes = 900 * kMiB;
  CHECK(session.verdict().code == VerdictCode::device_fragmentation);
  CHECK(has(session.summary(),
            "2.0 GiB on cuda:1 (NVIDIA H100) and was refused: with 3.0 GiB free in what "
            "PyTorch has reserved, in pieces of at most 900.0 MiB"));
  CHECK(has(session.evidence(),
            "PyTorch has allocated 5.0 GiB of 8.0 GiB that it has reserved; "
            "fragmentation_ratio 0.37 (warning)\n"));
  CHECK(has(session.evidence(), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));

  SUBCASE("a half is critical, a fifth is not mentioned") {
    session.at.torch_allocated_bytes = 4 * kGiB;
    CHECK(has(session.evidence(), "fragmentation_ratio 0.50 (critical)\n"));
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
  CHECK(session.verdict().code == VerdictCode::device_fragmentation);
  CHECK(has(session.summary(), "refused: with 2.0 GiB free in what its memory pools hold"));
  CHECK(has(session.evidence(),
            "memory pools hold 6.0 GiB, of which 4.0 GiB are used; fragmentation_ratio 0.33"));
  session.at.pool_used_bytes += 1;
  CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
}

TEST_CASE("failures that are not due to a device's memory") {
  Refused session;
  SUBCASE("the driver's host memory") {
    session.refused().space = static_cast<std::uint8_t>(Space::cuda_host);
    session.refused().rss_bytes = kGiB;
    session.refused().ram_bytes = 16 * kGiB;
    CHECK(session.verdict().code == VerdictCode::allocation_failed);
    CHECK(
        has(session.summary(), "the driver had no host memory for it (CUDA_ERROR_OUT_OF_MEMORY)"));
    CHECK(has(session.evidence(), "resident 1.0 GiB of 16.0 GiB RAM"));
  }
  SUBCASE("address space") {
    session.refused().space = static_cast<std::uint8_t>(Space::cuda_va);
    CHECK(session.verdict().code == VerdictCode::allocation_failed);
    CHECK(has(session.summary(), "the driver had no address space for it"));
  }
  SUBCASE("--fail") {
    session.refused().flags = session::kFailureInjected;
    session.refused().rule = session.string("cuMemAlloc:nth=2");
    CHECK(session.verdict().code == VerdictCode::injected);
    CHECK(has(session.evidence(), "the rule cuMemAlloc:nth=2 of --fail"));
  }
  SUBCASE("PyTorch's own allocator") {
    session.refused().space = static_cast<std::uint8_t>(Space::torch);
    session.refused().api = static_cast<std::uint16_t>(Api::reportOutOfMemoryToProfiler);
    session.refused().error = 0;
    CHECK(session.verdict().code == VerdictCode::device_out_of_memory);
    CHECK(has(session.summary(), "PyTorch gave up, but not because the driver refused; 410.0 MiB"));
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
  verdict::Verdict verdict = verdict::verdict_of(session.view(), Trigger::near_limit, 0);
  CHECK(verdict.code == VerdictCode::near_limit);
  CHECK(verdict.limit.kind == LimitKind::device);
  CHECK(verdict.limit.bytes == 80 * kGiB);
  CHECK(verdict.limit.used_bytes == 76 * kGiB);
  CHECK(std::string{verdict.summary} ==
        "cuda:1 (NVIDIA H100) is at 95 % of its 80.0 GiB (in use 76.0 GiB, of which this process "
        "holds 60.0 GiB): the next request may be refused");

  device.limit_bytes = 61 * kGiB;
  verdict = verdict::verdict_of(session.view(), Trigger::near_limit, 0);
  CHECK(verdict.limit.used_bytes == 60 * kGiB);
  CHECK(std::string{verdict.summary} ==
        "python3.11 is at 98 % of --limit-gpu of 61.0 GiB on cuda:1 (NVIDIA H100) (it holds 60.0 "
        "GiB): "
        "the next request may be refused");
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
  CHECK(verdict.code == VerdictCode::crashed);
  CHECK(has(verdict.summary, "its result does not lead to such an address"));

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
  CHECK(has(session.summary(), "asked cuMemAlloc for 2.0 GiB and was refused"));
}
