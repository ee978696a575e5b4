#include "tools/service/watch/exit_events.h"

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace oomrec::tools::service {
namespace {

// Values of proc_event::what. Linux 6.6 moved the enum out of its struct.
constexpr std::uint32_t kAnswer = 0;
constexpr std::uint32_t kExit = 0x80000000;
constexpr std::uint32_t kNothing = ~0U;

constexpr int kAnswerTimeoutMs = 200;  // for the reply to our subscription
// The event normally follows the pidfd within microseconds.
constexpr std::chrono::milliseconds kExitTimeout{200};

// A complete message; <linux/cn_proc.h> defines only its inner part.
struct Message {
  nlmsghdr netlink;
  std::uint32_t connector[5];  // cn_msg, without its flexible end
  std::uint32_t what, cpu, time_ns[2];
  union {
    std::uint32_t error;
    struct {
      std::int32_t pid, tgid;
      std::uint32_t status;
    } exit;
  };
};
static_assert(sizeof(cn_msg) == sizeof(Message::connector) && offsetof(Message, what) == 36);

// Passes only exits and replies, so that nothing else wakes us. A filter sees words in network byte
// order.
void attach_filter(int descriptor) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(Message, what)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(kExit), 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(kAnswer), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog filter{sizeof code / sizeof *code, code};
  setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

bool is_readable(int descriptor, int timeout_ms) {
  pollfd polled{descriptor, POLLIN, 0};
  return poll(&polled, 1, timeout_ms) == 1;
}

int ms_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

// False: no complete message. Any process may send to us: a message that is not from the kernel
// becomes kNothing.
bool receive(int descriptor, Message& message) {
  std::memset(&message, 0, sizeof message);
  alignas(nlmsghdr) char bytes[512];
  sockaddr_nl sender{};
  socklen_t sender_bytes = sizeof sender;
  const ssize_t got = recvfrom(descriptor, bytes, sizeof bytes, 0,
                               reinterpret_cast<sockaddr*>(&sender), &sender_bytes);
  constexpr auto kLeast = static_cast<ssize_t>(offsetof(Message, error) + sizeof message.error);
  if (got < kLeast) return false;
  message.what = kNothing;
  if (sender.nl_pid == 0)
    std::memcpy(&message, bytes, std::min(sizeof message, static_cast<std::size_t>(got)));
  return true;
}

}  // namespace

ExitEvents::ExitEvents(std::function<bool(pid_t)> awaited) : awaited_(std::move(awaited)) {
  descriptor_ = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
  if (descriptor_ >= 0 && !subscribe()) descriptor_ = -1;
}

// False: not permitted, or no reply, as in a pid namespace other than the initial one.
bool ExitEvents::subscribe() const {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  attach_filter(descriptor_);
  if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return false;
  struct {
    nlmsghdr netlink;
    std::uint32_t connector[5];
    std::uint32_t operation;
  } request{};
  static_assert(sizeof request == 40);
  request.netlink.nlmsg_len = sizeof request;
  request.netlink.nlmsg_type = NLMSG_DONE;
  cn_msg connector{};
  connector.id = {CN_IDX_PROC, CN_VAL_PROC};
  connector.len = sizeof request.operation;
  std::memcpy(request.connector, &connector, sizeof request.connector);
  request.operation = PROC_CN_MCAST_LISTEN;
  if (send(descriptor_, &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request))
    return false;
  Message message;
  while (is_readable(descriptor_, kAnswerTimeoutMs))
    if (receive(descriptor_, message) && message.what == kAnswer) return message.error == 0;
  return false;
}

void ExitEvents::read_events() {
  // Drops processes that are no longer awaited: their pids may be reused soon.
  std::erase_if(ended_, [&](const auto& entry) { return !awaited_(entry.first); });
  Message message;
  errno = 0;
  while (receive(descriptor_, message) || errno == ENOBUFS) {
    errno = 0;
    // The last thread's status is that of the process.
    if (message.what == kExit && awaited_(message.exit.tgid))
      ended_[message.exit.tgid] = static_cast<int>(message.exit.status);
  }
}

std::optional<int> ExitEvents::wait_status(pid_t process) {
  if (descriptor_ < 0) return {};
  const auto deadline = std::chrono::steady_clock::now() + kExitTimeout;
  do read_events();
  while (!ended_.contains(process) && is_readable(descriptor_, ms_until(deadline)));
  const auto ended = ended_.extract(process);
  return ended.empty() ? std::nullopt : std::optional{ended.mapped()};
}

}  // namespace oomrec::tools::service
