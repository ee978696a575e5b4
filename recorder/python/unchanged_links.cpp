#include "recorder/python/unchanged_links.h"

#include "recorder/python/code_fingerprint.h"
#include "recorder/python/layouts.h"

namespace oomrec::stack {
namespace {

// Constant offsets halve the cost. The offsets that 3.13 and later publish are, in an ordinary
// build, 3.12's except for the role's.
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

// Whether both have the same offsets of the fields that are read here.
bool reads_alike(const PythonOffsets& a, const PythonOffsets& b) noexcept {
  return have_cframe_markers(a) == have_cframe_markers(b) &&
         a.instruction_kind == b.instruction_kind && a.frame_previous == b.frame_previous &&
         a.frame_code == b.frame_code && a.frame_instruction == b.frame_instruction &&
         a.frame_role == b.frame_role && a.code_file == b.code_file && a.code_name == b.code_name &&
         a.code_line_table == b.code_line_table && a.code_first_line == b.code_first_line &&
         a.code_version == b.code_version && a.bytes_size == b.bytes_size &&
         a.bytes_data == b.bytes_data;
}

// kAttached: `state` is attached, so it cannot die meanwhile.
template <class Layout, bool kAttached>
std::uint32_t first_changed(const PythonCache& cache, std::uint32_t index, const ThreadState& state,
                            std::uint64_t& cframe) noexcept {
  const PythonOffsets& at = Layout::at();
  const PythonLink* const outermost = &cache.link(0);
  const PythonLink* link = outermost + index;
  const PythonFrame* frame = cache.frames + index;
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
    if (link == outermost) return kNoneChanged;
    if (have_cframe_markers(at) && leaves_call(at, cells)) {
      call = outer_cframe(at, call);
      call_holds = frame[-1].marker == call;
    }
  }
  cframe = call;
  return static_cast<std::uint32_t>(link - outermost);
}

template <class Layout>
std::uint32_t first_changed_link(const PythonCache& cache, std::uint32_t index,
                                 const ThreadState& state, std::uint64_t& cframe) {
  return state.attached ? first_changed<Layout, true>(cache, index, state, cframe)
                        : first_changed<Layout, false>(cache, index, state, cframe);
}

template <const PythonOffsets& kLayout>
FirstChangedLink if_alike(const PythonOffsets& at) noexcept {
  return reads_alike(at, kLayout) ? first_changed_link<Constant<kLayout>> : nullptr;
}

}  // namespace

FirstChangedLink first_changed_link_by(const PythonOffsets& at) noexcept {
  for (const FirstChangedLink held :
       {if_alike<kLayout38>(at), if_alike<kLayout310>(at), if_alike<kLayout311>(at),
        if_alike<kLayout312>(at), if_alike<kLayout314>(at)}) {
    if (held != nullptr) return held;
  }
  return first_changed_link<Published>;
}

}  // namespace oomrec::stack
