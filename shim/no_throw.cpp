// Functions that the C++ library's headers call where they would throw. This library never throws,
// and the real ones would pull in the exception machinery and the newest symbols of glibc. Callers
// check their bounds; a failed check stops here.
//
// By their symbols' names: declared in std, they would be exported, for the program's own code,
// too.

// std::__throw_out_of_range_fmt(const char*, ...)
extern "C" [[noreturn, gnu::visibility("hidden")]] void oomrec_throw_out_of_range(
    const char*, ...) asm("_ZSt24__throw_out_of_range_fmtPKcz");
void oomrec_throw_out_of_range(const char*, ...) { __builtin_trap(); }
