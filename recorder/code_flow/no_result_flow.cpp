// Where no decoder reads the processor's instructions: nothing is known of what became of a result.
#include "recorder/code_flow/result_flow.h"

namespace oomrec::code_flow {

ResultFlow follow_result(InHook, const Question&) noexcept { return {}; }

}  // namespace oomrec::code_flow
