// A driver's functions as a client finds them. Included last by the vendor's header, which has the
// types, CLIENT_FUNCTIONS and CLIENT_OTHER_FUNCTIONS.
#pragma once

namespace oomrec::gpu_trial {

// The functions of the table, found in the chosen way.
struct Functions {
#define X(name, base, parameters, ...) Result(*name) parameters = nullptr;
  CLIENT_FUNCTIONS(X)
#undef X
};
extern Functions f;

struct OtherFunctions {
#define X(name, parameters) Result(*name) parameters = nullptr;
  CLIENT_OTHER_FUNCTIONS(X)
#undef X
};
extern OtherFunctions other;

}  // namespace oomrec::gpu_trial
