#include "common/verdict/ceiling.h"

namespace oomrec::verdict {
namespace {

void add_evidence(Verdict& verdict, const Ceiling& ceiling) noexcept {
  add_line(verdict, [&](text::Text& line) {
    if (ceiling.is_unread()) {
      if (ceiling.hit) {
        line.add("request ");
        ceiling.add_figure(line, ceiling.request);
        line.add(" > ");
      }
      line.add(ceiling.name).add(' ');
      ceiling.add_figure(line, ceiling.limit);
      return void(line.add("; what is in use could not be read"));
    }
    line.add(ceiling.measure).add(' ');
    ceiling.add_figure(line, ceiling.used);
    line.add(" + request ");
    ceiling.add_figure(line, ceiling.request);
    line.add(ceiling.hit ? " > " : " <= ").add(ceiling.name).add(' ');
    ceiling.add_figure(line, ceiling.limit);
  });
}

}  // namespace

Ceiling counted(LimitKind kind, std::string_view name, std::string_view measure,
                std::uint64_t limit, std::uint64_t used, std::uint64_t request) noexcept {
  // A limit of 0 is one: `ulimit -u 0`.
  const bool hit = used != 0 && limit != session::kUnlimited && add(used, request) > limit;
  return {kind, name, measure, used != 0 ? limit : session::kUnlimited, used, request, hit};
}

const Ceiling* first_hit(Verdict& verdict, std::span<const Ceiling> ceilings) noexcept {
  const Ceiling* hit = nullptr;
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.in_force() || ceiling.hit) add_evidence(verdict, ceiling);
    if (hit == nullptr && ceiling.hit) hit = &ceiling;
  }
  return hit;
}

}  // namespace oomrec::verdict
