#include "tools/base/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "common/options/options.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"

#include <CLI/CLI.hpp>

namespace oomrec::tools {
namespace {

// Accepts finite numbers from 0.
bool read_number(const std::string& text, double& value) {
  const auto number = parse_number<double>(text);
  if (!number || std::signbit(*number) || !std::isfinite(*number)) return false;
  value = *number;
  return true;
}

// Clamps a number that is too large: all such options are upper bounds.
bool read_whole_number(const std::string& text, unsigned& value) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return false;
  value = parse_number<unsigned>(text).value_or(std::numeric_limits<unsigned>::max());
  return true;
}

}  // namespace

Error invalid_value(std::string_view name, std::string_view text, const std::string& what_to_do,
                    Exit code) {
  return {code, fmt::format("invalid value '{}' for {}", printable(text), name), what_to_do};
}

struct Arguments::State {
  using Row = ArgumentRow;

  std::string command, usage, summary, examples;
  std::vector<Row> rows;
  std::vector<Row> positionals;
  std::vector<std::string>* rest = nullptr;
  std::vector<std::string> rest_beginnings;  // flags that start it
  bool repeated = false;
  Exit bad_input = Exit::bad_input;
  CLI::App app;

  // `read` returns false for an invalid text; then the error says what is `accepted`.
  void add(const Row& row, const std::string& accepted,
           const std::function<bool(const std::string&)>& read) {
    const auto take = [this, name = row.name, accepted, read](const std::string& text) {
      if (read(text)) return;
      throw invalid_value(name, text, fmt::format("Use {}.", accepted), bad_input);
    };
    app.add_option_function<std::string>(row.name, take)->take_last();
    rows.push_back(row);
  }

  Error translate(const CLI::ParseError& error, const std::vector<std::string>& words) const {
    const std::string message = error.what();
    const std::string name = message.substr(0, message.find(':'));
    const auto row = std::ranges::find(rows, name, &Row::name);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && row != rows.end()) {
      return {bad_input, fmt::format("{} needs a value", name),
              fmt::format("{} {}: {}", name, row->type, row->help)};
    }
    const std::vector<std::string> left = app.remaining();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !left.empty()) {
      const std::string word = printable(left[0]);
      return {bad_input,
              word.starts_with("-") ? fmt::format("unknown option {}", word)
                                    : fmt::format("unexpected argument '{}'", word),
              advice(words)};
    }
    return {bad_input, printable(message), advice(words)};
  }

  bool takes_value(std::string_view word) const {
    return std::ranges::any_of(
        rows, [&](const Row& row) { return row.name == word && !row.type.empty(); });
  }

  // The index of the first word that belongs to the program.
  std::size_t rest_begins(const std::vector<std::string>& words) const {
    std::size_t i = 0;
    while (i < words.size() && words[i] != "--" && words[i].starts_with("-") &&
           std::ranges::find(rest_beginnings, words[i]) == rest_beginnings.end()) {
      const bool has_value = i + 1 < words.size() && words[i + 1] != "--";
      i += takes_value(words[i]) && has_value ? 2 : 1;
    }
    return i;
  }

  std::string advice(const std::vector<std::string>& words) const {
    std::vector<std::string_view> names = {"--help"};
    for (const Row& row : rows) names.push_back(row.name);
    for (const std::string& word : words) {
      const std::string_view name = std::string_view{word}.substr(0, word.find('='));
      if (!name.starts_with("--") || std::ranges::find(names, name) != names.end()) {
        continue;
      }
      const std::string_view meant = nearest(name, names);
      if (!meant.empty()) return fmt::format("Did you mean {}?", meant);
    }
    return fmt::format("`oomrec {} --help` lists the options.", command);
  }
};

Arguments::Arguments(std::string_view command, std::string_view usage, std::string_view summary,
                     std::string_view examples)
    : state_(std::make_unique<State>()) {
  state_->command = command;
  state_->usage = usage;
  state_->summary = summary;
  state_->examples = examples;
  state_->app.set_help_flag();
}

Arguments::~Arguments() = default;

void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag(name, value);
  state_->rows.push_back({name, "", help});
}

void Arguments::option(const std::string& name, const std::string& type, std::string& value,
                       const std::string& help, const std::vector<std::string>& suggested) {
  state_->add({name, type, help, suggested}, "", [&value](const std::string& text) {
    value = text;
    return true;
  });
}

void Arguments::option(const std::string& name, const std::string& type, double& value,
                       const std::string& help) {
  state_->add({name, type, help}, "a number, such as 0.5",
              [&value](const std::string& text) { return read_number(text, value); });
}

void Arguments::option(const std::string& name, const std::string& type, unsigned& value,
                       const std::string& help) {
  state_->add({name, type, help}, "a whole number",
              [&value](const std::string& text) { return read_whole_number(text, value); });
}

void Arguments::choice(const std::string& name, const std::string& type, std::string& value,
                       const std::vector<std::string>& words, const std::string& help) {
  const std::string list = fmt::format("{}", fmt::join(words, ", "));
  state_->add({name, type, fmt::format("{}: {}", help, list), words},
              fmt::format("one of {}", list), [&value, words](const std::string& text) {
                value = text;
                return std::ranges::find(words, text) != words.end();
              });
}

void Arguments::positional(const std::string& name, std::string& value, const std::string& help,
                           const std::vector<std::string>& suggested) {
  // An empty word is probably an unset variable of a script: an error, not the default.
  state_->app.add_option_function<std::string>(name, [&value, name](const std::string& word) {
    if (word.empty()) throw CLI::ValidationError{name, "an empty word was given"};
    value = word;
  });
  state_->positionals.push_back({name, "", help, suggested});
}

void Arguments::positionals(const std::string& name, std::vector<std::string>& values,
                            const std::string& help) {
  const auto take = [&values, name](const std::vector<std::string>& words) {
    for (const std::string& word : words)
      if (word.empty()) throw CLI::ValidationError{name, "an empty word was given"};
    values = words;
  };
  state_->app.add_option_function<std::vector<std::string>>(name, take);
  state_->repeated = true;
  state_->positionals.push_back({name, "", help});
}

void Arguments::rest(const std::string& name, std::vector<std::string>& words,
                     const std::string& help, const std::vector<std::string>& beginnings,
                     const std::vector<std::string>& suggested) {
  state_->rest = &words;
  state_->rest_beginnings = beginnings;
  state_->positionals.push_back({name, "", help, suggested});
}

bool Arguments::parse(const std::vector<std::string>& words, Exit bad_input) {
  if (listener_ != nullptr) {
    *listener_ = {state_->usage,       state_->summary,         state_->rows,
                  state_->positionals, state_->rest != nullptr, state_->repeated};
    return false;
  }
  state_->bad_input = bad_input;
  std::vector<std::string> ours = words;
  if (state_->rest != nullptr) {
    const auto begin = static_cast<std::ptrdiff_t>(state_->rest_begins(words));
    ours.resize(static_cast<std::size_t>(begin));
    state_->rest->assign(words.begin() + begin, words.end());
    if (!state_->rest->empty() && state_->rest->front() == "--") {
      state_->rest->erase(state_->rest->begin());
    }
  }
  if (std::ranges::find(ours, "--help") != ours.end() ||
      std::ranges::find(ours, "-h") != ours.end()) {
    fmt::print("{}", help());
    return false;
  }
  try {
    std::vector<std::string> reversed(ours.rbegin(), ours.rend());
    state_->app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw state_->translate(error, ours);
  }
  return true;
}

ArgumentTable Arguments::table_of(const std::function<void()>& command) {
  ArgumentTable table;
  listener_ = &table;
  command();
  listener_ = nullptr;
  return table;
}

bool Arguments::given(const std::string& name) const { return state_->app.count(name) != 0; }

std::string Arguments::help() const {
  std::vector<std::pair<std::string, std::string>> lines;
  std::size_t widest = std::string_view{"--help"}.size();
  for (const auto* rows : {&state_->positionals, &state_->rows}) {
    for (const State::Row& row : *rows) {
      lines.emplace_back(row.type.empty() ? row.name : row.name + " " + row.type, row.help);
      widest = std::max(widest, lines.back().first.size());
    }
  }
  lines.emplace_back("--help", "show this help");

  std::string text = fmt::format("usage: oomrec {} {}\n\n{}\n\n", state_->command, state_->usage,
                                 wrap(state_->summary, kColumns, 0));
  for (const auto& [name, help] : lines) {
    text += fmt::format("  {:<{}}  {}\n", name, widest, wrap(help, kColumns, widest + 4));
  }
  return text + fmt::format("\nexamples:\n{}", state_->examples);
}

void FailAbove::add_to(Arguments& arguments, const std::string& help) {
  arguments.option("--fail-above", "SIZE", text_, help);
}

void FailAbove::read() {
  if (text_.empty() || parse_size(text_, bytes_)) return;
  throw invalid_value("--fail-above", text_,
                      "Use a size such as 64M: suffixes are K M G T (powers of 1024).");
}

void FailAbove::check(std::uint64_t bytes, const std::string& what) const {
  if (text_.empty() || bytes <= bytes_) return;
  throw Error{
      Exit::check_failed,
      fmt::format("{} {}, more than --fail-above {}", size_text(bytes), what, size_text(bytes_)),
      "The page above shows where."};
}

}  // namespace oomrec::tools
