#include "tools/deaths/log_lines.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "common/system/files.h"
#include "common/system/text.h"
#include "common/system/units.h"
#include "tools/base/text.h"

namespace oomrec::tools::deaths {
namespace {

constexpr std::uint64_t kDay = 24 * 3600 * kSecondNs;

bool take(std::string_view& text, std::uint64_t& value) {
  const auto number = take_number<std::uint64_t>(text);
  if (number) value = *number;
  return number.has_value();
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

// "earlyoom[812]: text": takes the name and leaves the text.
std::optional<std::string> take_name(std::string_view& line) {
  const std::size_t end = line.find(": ");
  if (end == line.npos || line.substr(0, end).find(' ') != line.npos) return std::nullopt;
  const std::string_view tag = line.substr(0, end);
  line.remove_prefix(end + 2);
  return std::string{tag.substr(0, tag.find('['))};
}

// "4,11295,20579972984,-,caller=T42;text", of a program "30,11296,20579973120,-;earlyoom[812]:
// text"
std::optional<LogRecord> kmsg_record(std::string_view line, const LogClock& clock) {
  std::uint64_t priority = 0, sequence = 0, microseconds = 0;
  if (!take(line, priority) || !take(line, ',') || !take(line, sequence) || !take(line, ',') ||
      !take(line, microseconds) || !take(line, ',')) {
    return std::nullopt;
  }
  const std::size_t text = line.find(';');
  if (text == line.npos) return std::nullopt;
  const std::uint64_t realtime_ns = clock.boot_realtime_ns + microseconds * 1000;
  constexpr std::uint64_t kLevels = 8;  // the kernel gives no other sender the facility 0
  if (priority >= kLevels) {
    std::string_view rest = line.substr(text + 1);
    const auto sender = take_name(rest);
    return LogRecord{realtime_ns, std::string{rest}, sender.value_or(std::string{})};
  }
  LogRecord record{realtime_ns, std::string{line.substr(text + 1)}};
  constexpr std::string_view kCaller = "caller=";
  const std::string_view fields = line.substr(0, text);
  if (const std::size_t at = fields.find(kCaller); at != fields.npos) {
    const std::string_view caller = fields.substr(at + kCaller.size());
    record.caller = caller.substr(0, caller.find(','));
  }
  return record;
}

// "[20579.972984] text": returns the nanoseconds since boot, and leaves the text in `line`.
std::optional<std::uint64_t> take_seconds_since_boot(std::string_view& line) {
  std::string_view rest = line;
  std::uint64_t seconds = 0, fraction = 0;
  if (!take(rest, '[')) return std::nullopt;
  skip_blanks(rest);
  if (!take(rest, seconds) || !take(rest, '.') || !take(rest, fraction) || !take(rest, ']'))
    return std::nullopt;
  take(rest, ' ');  // none before a caller: "[184233.517263][ T2211] text"
  line = rest;
  return seconds * kSecondNs + fraction * 1000;
}

// "[  T42] ": CONFIG_PRINTK_CALLER writes the thread or the CPU behind the time.
std::string take_caller(std::string_view& line) {
  std::string_view rest = line;
  if (!take(rest, '[')) return {};
  skip_blanks(rest);
  const std::size_t end = rest.find("] ");
  const std::string_view caller = rest.substr(0, end);
  const bool is_caller = end != rest.npos && caller.size() > 1 &&
                         (caller.front() == 'T' || caller.front() == 'C') &&
                         caller.find_first_not_of("0123456789", 1) == caller.npos;
  if (!is_caller) return {};
  line = rest.substr(end + 2);
  return std::string{caller};
}

// "<4>", "kern  :warn  : ": the priority, as dmesg -r and dmesg -x show it.
void skip_priority(std::string_view& line) {
  std::string_view rest = line;
  std::uint64_t priority = 0;
  if (take(rest, '<') && take(rest, priority) && take(rest, '>')) {
    line = rest;
    return;
  }
  const std::size_t bracket = line.find('[');
  if (bracket == line.npos || !line.starts_with("kern") ||
      std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(bracket), ':') != 2)
    return;
  line.remove_prefix(bracket);
}

enum class Zone : std::uint8_t { local, utc };

std::optional<std::uint64_t> realtime_of(std::tm time, Zone zone) {
  time.tm_isdst = -1;
  const std::time_t seconds = zone == Zone::local ? std::mktime(&time) : timegm(&time);
  if (seconds < 0) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * kSecondNs;
}

// A time without a year: the latest that is not in the future.
std::optional<std::uint64_t> in_latest_year(std::tm time, const LogClock& clock) {
  const auto now = static_cast<std::time_t>(clock.now_realtime_ns / kSecondNs);
  std::tm today{};
  if (localtime_r(&now, &today) == nullptr) return std::nullopt;
  time.tm_year = today.tm_year;
  auto realtime = realtime_of(time, Zone::local);
  if (realtime && *realtime > clock.now_realtime_ns + kDay) {
    --time.tm_year;
    realtime = realtime_of(time, Zone::local);
  }
  return realtime;
}

// The latest day of this number, in this year if that is not 0, that is not in the future: for
// dates with the month's name in another language.
std::optional<std::uint64_t> latest_such_day(std::tm time, int year, const LogClock& clock) {
  const auto now = static_cast<std::time_t>(clock.now_realtime_ns / kSecondNs);
  std::tm today{};
  if (localtime_r(&now, &today) == nullptr) return std::nullopt;
  for (int months_ago = 0; months_ago < 12; ++months_ago) {
    std::tm then = time;
    then.tm_year = today.tm_year;
    then.tm_mon = today.tm_mon - months_ago;
    const std::tm asked = then;
    const auto realtime = realtime_of(then, Zone::local);
    if (!realtime || *realtime > clock.now_realtime_ns + kDay) continue;
    const auto seconds = static_cast<std::time_t>(*realtime / kSecondNs);
    std::tm found{};
    if (localtime_r(&seconds, &found) == nullptr || found.tm_mday != asked.tm_mday) continue;
    if (year == 0 || found.tm_year + 1900 == year) return realtime;
  }
  return std::nullopt;
}

// The word at the beginning, which is a name: "ноя", "Di".
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  const bool is_name = !word.empty() && word.size() < 24 && word.size() < line.size() &&
                       word.find_first_of("0123456789[]:<") == word.npos;
  if (!is_name) return {};
  line.remove_prefix(word.size());
  skip_blanks(line);
  return word;
}

// "[Sun Nov 22 01:18:19 2026] ", with names in any language: local time.
std::optional<std::uint64_t> take_date_in_brackets(std::string_view& line, const LogClock& clock) {
  const std::size_t end = line.find("] ");
  if (!line.starts_with('[') || end == line.npos) return std::nullopt;
  const std::string text{line.substr(1, end - 1)};
  std::tm time{};
  const char* rest = strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &time);
  std::optional<std::uint64_t> realtime;
  if (rest != nullptr && *rest == '\0') {
    realtime = realtime_of(time, Zone::local);
  } else {
    std::string_view words{text};
    if (take_word(words).empty() || take_word(words).empty()) return std::nullopt;
    time = {};
    rest = strptime(std::string{words}.c_str(), "%d %H:%M:%S %Y", &time);
    if (rest == nullptr || *rest != '\0') return std::nullopt;
    realtime = latest_such_day(time, time.tm_year + 1900, clock);
  }
  if (realtime) line.remove_prefix(end + 2);
  return realtime;
}

// "ноя 22 01:18:19 ": the same in another language.
std::optional<std::uint64_t> take_translated_time(std::string_view& line, const LogClock& clock) {
  std::string_view rest = line;
  std::tm month{};
  const std::string name{take_word(rest)};
  if (name.empty() || strptime(name.c_str(), "%b", &month) != nullptr) return std::nullopt;
  constexpr std::size_t kMostBytes = 12;
  std::tm time{};
  const std::string text{rest.substr(0, kMostBytes)};
  const char* const end = strptime(text.c_str(), "%d %H:%M:%S ", &time);
  if (end == nullptr || end == text.c_str() || end[-1] != ' ') return std::nullopt;
  const auto realtime = latest_such_day(time, 0, clock);
  rest.remove_prefix(static_cast<std::size_t>(end - text.c_str()));
  if (realtime) line = rest;
  return realtime;
}

// "Nov 22 01:18:19 ": local time, without a year. Assumes the latest such day that is not in the
// future.
std::optional<std::uint64_t> take_traditional_time(std::string_view& line, const LogClock& clock) {
  constexpr std::size_t kBytes = 16;
  if (line.size() < kBytes) return std::nullopt;
  const std::string text{line.substr(0, kBytes)};
  if (const auto realtime = take_translated_time(line, clock)) return realtime;
  std::tm time{};
  const char* const end = strptime(text.c_str(), "%b %d %H:%M:%S ", &time);
  if (end != text.c_str() + kBytes) return std::nullopt;
  line.remove_prefix(kBytes);
  return in_latest_year(time, clock);
}

// "2026-11-22T01:18:19.123456+00:00 ", in systemd's tools with "+0000", in dmesg with a comma.
std::optional<std::uint64_t> take_iso_time(std::string_view& line) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos) return std::nullopt;
  const std::string text{line.substr(0, blank)};
  std::tm time{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  if (*rest == '.' || *rest == ',')
    rest += 1 + std::string_view{rest + 1}.find_first_not_of("0123456789");
  const std::string_view zone{rest};
  const auto local = realtime_of(time, Zone::utc);
  if (!local) return std::nullopt;
  line.remove_prefix(blank + 1);
  if (zone.size() < 5) return local;  // "Z"
  const std::uint64_t minutes =
      system::number_in(zone.substr(1, 2)) * 60 + system::number_in(zone.substr(zone.size() - 2));
  const std::uint64_t ahead = minutes * 60 * kSecondNs;
  return zone.front() == '-' ? *local + ahead : *local - ahead;
}

// "host earlyoom[812]: text", in BusyBox "host kern.warn kernel: text": takes the sender and leaves
// the text.
std::optional<std::string> take_sender(std::string_view& line) {
  const std::size_t end = line.find(": ");
  const std::string_view head = line.substr(0, end);
  const auto blanks = std::count(head.begin(), head.end(), ' ');
  if (end == line.npos || blanks < 1 || blanks > 2) return std::nullopt;
  if (blanks == 2 && head.substr(0, head.rfind(' ')).find('.') == head.npos) return std::nullopt;
  const std::string_view tag = head.substr(head.rfind(' ') + 1);
  const std::string_view sender = tag.substr(0, tag.find('['));
  line.remove_prefix(end + 2);
  if (sender == "kernel") take_seconds_since_boot(line);
  return std::string{sender};
}

LogRecord kernel_record(std::uint64_t realtime_ns, std::string_view line) {
  std::string caller = take_caller(line);
  LogRecord record{realtime_ns, std::string{line}};
  record.caller = std::move(caller);
  return record;
}

std::optional<LogRecord> syslog_record(std::uint64_t realtime_ns, std::string_view line) {
  const auto sender = take_sender(line);
  if (!sender) return std::nullopt;
  if (*sender == "kernel") return kernel_record(realtime_ns, line);
  return LogRecord{realtime_ns, std::string{line}, *sender};
}

// ESX writes what its guest's kernel logs into the machine's own log:
// "2026-11-17T03:14:05.000Z In(05) vcpu-2 - Guest: <4>[184233.517263] text".
std::optional<LogRecord> guest_record(std::uint64_t realtime_ns, std::string_view line) {
  constexpr std::string_view kGuest = " - Guest: ";
  const std::size_t at = line.find(kGuest);
  if (at == line.npos || line.substr(0, at).find("vcpu-") == line.npos) return std::nullopt;
  line.remove_prefix(at + kGuest.size());
  skip_priority(line);
  if (!take_seconds_since_boot(line)) return std::nullopt;
  return kernel_record(realtime_ns, line);
}

// Of Talos: "kern: warning: [2026-11-17T03:14:05.000061988Z]: text", of a program "user: …".
std::optional<LogRecord> talos_record(std::string_view line) {
  const std::size_t bracket = line.find(": [");
  const std::string_view head = line.substr(0, bracket);
  const std::size_t end = line.find("]: ");
  if (bracket == line.npos || end == line.npos || head.find(": ") == head.npos ||
      head.find('[') != head.npos)
    return std::nullopt;
  std::string date{line.substr(bracket + 3, end - bracket - 3)};
  date += ' ';
  std::string_view rest{date};
  const auto realtime = take_iso_time(rest);
  if (!realtime) return std::nullopt;
  line.remove_prefix(end + 3);
  return head.starts_with("kern:") ? kernel_record(*realtime, line)
                                   : LogRecord{*realtime, std::string{line}, "talos"};
}

}  // namespace

LogClock LogClock::now() {
  // Like the log's clock, the monotonic clock stops while the machine sleeps.
  const std::uint64_t realtime = system::realtime_ns();
  return {realtime, realtime - system::monotonic_ns()};
}

std::uint64_t LogClock::error_ns() const {
  constexpr std::uint64_t kDrift = 10'000;  // at most one part in 10,000
  return 2 * kSecondNs + (now_realtime_ns - boot_realtime_ns) / kDrift;
}

std::optional<LogRecord> human_record(std::string_view line, const LogClock& clock,
                                      std::uint64_t& realtime_ns) {
  const std::size_t end = line.find("] ");
  if (!line.starts_with('[') || end == line.npos) return std::nullopt;
  std::string_view inside = line.substr(1, end - 1);
  const std::string text{inside};
  skip_blanks(inside);
  std::tm time{};
  std::uint64_t seconds = 0, fraction = 0;
  if (take(inside, '+') && take(inside, seconds) && take(inside, '.') && take(inside, fraction)) {
    if (realtime_ns == 0) return std::nullopt;
    realtime_ns += seconds * kSecondNs + fraction * 1000;
  } else if (const char* const rest = strptime(text.c_str(), "%b%d %H:%M", &time);
             rest != nullptr && *rest == '\0') {
    const auto minute = in_latest_year(time, clock);
    if (!minute) return std::nullopt;
    realtime_ns = std::max(realtime_ns, *minute);
  } else {
    return std::nullopt;
  }
  return kernel_record(realtime_ns, line.substr(end + 2));
}

std::optional<LogRecord> log_record(std::string_view line, const LogClock& clock) {
  if (auto record = kmsg_record(line, clock)) return record;
  if (auto record = talos_record(line)) return record;
  skip_priority(line);
  if (const auto since_boot = take_seconds_since_boot(line)) {
    const std::uint64_t realtime_ns = clock.boot_realtime_ns + *since_boot;
    // journalctl -o short-monotonic names host and sender, dmesg does not.
    std::string_view rest = line;
    constexpr std::string_view kWithoutHost = "kernel: ";
    if (rest.starts_with(kWithoutHost))
      return kernel_record(realtime_ns, rest.substr(kWithoutHost.size()));
    const auto sender = take_sender(rest);
    const bool is_journal =
        sender && (*sender == "kernel" || line.substr(0, line.find(": ")).ends_with(']'));
    return is_journal ? LogRecord{realtime_ns, std::string{rest}, *sender}
                      : kernel_record(realtime_ns, line);
  }
  if (const auto date = take_date_in_brackets(line, clock)) return kernel_record(*date, line);
  const bool is_dmesg_iso = line.substr(0, line.find(' ')).find(',') != line.npos;
  if (auto time = take_traditional_time(line, clock)) return syslog_record(*time, line);
  const auto time = take_iso_time(line);
  if (!time) return std::nullopt;
  if (auto record = guest_record(*time, line)) return record;
  return is_dmesg_iso ? kernel_record(*time, line) : syslog_record(*time, line);
}

}  // namespace oomrec::tools::deaths
