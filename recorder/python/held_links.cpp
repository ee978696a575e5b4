#include "recorder/python/held_links.h"

#include "recorder/python/code_fingerprint.h"
#include "recorder/python/layouts.h"

namespace oomrec::stack {
namespace {

// Loads at constant offsets are half of what this costs with variable ones. What 3.13 and later
// publish is, in an ordinary build, 3.12's but for the place of the role.
constexpr PythonOffsets with_role_at(std::uint16_t role) noexcept {
  PythonOffsets layout = kLayout312;
  layout.frame_role = role;
  return layout;
}
constexpr PythonOffsets kLayout314 = with_role_at(74);

template <const PythonOffsets& kLayout>
struct Constant {
  static constexpr const PythonOffsets& at() noexcept { return kLayout; }
};
struct Published {
  static const PythonOffsets& at() noexcept { return g_interpreter.at; }
};

// Of the fields that are read here.
bool reads_alike(const PythonOffsets& a, const PythonOffsets& b) noexcept {
  return have_cframe_markers(a) == have_cframe_markers(b) &&
         a.instruction_kind == b.instruction_kind && a.frame_previous == b.frame_previous &&
         a.frame_code == b.frame_code && a.frame_instruction == b.frame_instruction &&
         a.frame_role == b.frame_role && a.code_file == b.code_file && a.code_name == b.code_name &&
         a.code_line_table == b.code_line_table && a.code_first_line == b.code_first_line &&
         a.code_version == b.code_version && a.bytes_size == b.bytes_size &&
         a.bytes_data == b.bytes_data;
}

// kAttached: `state` is; nothing but the memory is looked at then.
template <class Layout, bool kAttached>
std::uint32_t first_changed(const PythonMemo& memo, std::uint32_t index, const ThreadState& state,
                            std::uint64_t& cframe) noexcept {
  const PythonOffsets& at = Layout::at();
  const PythonLink* const outermost = &memo.link(0);
  const PythonLink* link = outermost + index;
  const PythonFrame* frame = memo.frames + index;
  std::uint64_t call = cframe;
  bool call_holds = !have_cframe_markers(at) || frame->marker == call;
  for (;; --link, --frame) {
    const FrameCells cells = cells_of(at, link->address);
    if (!kAttached && !state.was_alive()) return kThreadDied;
    const std::uint64_t outer = link[-1].address;
    const std::uint64_t different = (cells.previous ^ outer) | (cells.code ^ link->code) |
                                    (cells.instruction ^ link->instruction) |
                                    (cells.role ^ link->role);
    if (different != 0 || !call_holds) break;
    if (link->has_code && !(code_fingerprint(at, code_of(link->code)) == link->fingerprint)) break;
    if (link == outermost) return kAllHold;
    if (have_cframe_markers(at) && leaves_call(at, cells)) {
      call = outer_cframe(at, call);
      call_holds = frame[-1].marker == call;
    }
  }
  cframe = call;
  return static_cast<std::uint32_t>(link - outermost);
}

template <class Layout>
std::uint32_t links_held(const PythonMemo& memo, std::uint32_t index, const ThreadState& state,
                         std::uint64_t& cframe) {
  return state.attached ? first_changed<Layout, true>(memo, index, state, cframe)
                        : first_changed<Layout, false>(memo, index, state, cframe);
}

template <const PythonOffsets& kLayout>
LinksHeld if_alike(const PythonOffsets& at) noexcept {
  return reads_alike(at, kLayout) ? links_held<Constant<kLayout>> : nullptr;
}

}  // namespace

LinksHeld links_held_by(const PythonOffsets& at) noexcept {
  for (const LinksHeld held :
       {if_alike<kLayout38>(at), if_alike<kLayout310>(at), if_alike<kLayout311>(at),
        if_alike<kLayout312>(at), if_alike<kLayout314>(at)}) {
    if (held != nullptr) return held;
  }
  return links_held<Published>;
}

}  // namespace oomrec::stack
