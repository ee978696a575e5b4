// Runtimes with a memory limit of their own, and the functions in which they give up there.
//
// The recorder looks for these functions on the stack of a process that is about to end; the
// verdict takes its words from here. A new runtime needs a value of session::Runtime and its rows.
#pragma once

#include <string_view>

#include "common/session/evidence.h"

namespace oomrec::verdict {

struct RuntimeKind {
  session::Runtime runtime;
  std::string_view limit;   // "node reached V8's heap limit"
  std::string_view option;  // what raises it
};

inline constexpr RuntimeKind kRuntimes[] = {
    {session::Runtime::v8, "V8's heap limit", "--max-old-space-size"},
    {session::Runtime::jvm, "a memory limit of the JVM",
     "-Xmx, -XX:MaxMetaspaceSize, -XX:MaxDirectMemorySize"},
    {session::Runtime::php, "PHP's memory_limit", "memory_limit in php.ini, or -d memory_limit"},
};

// Null: unknown, or a recording of a newer version.
constexpr const RuntimeKind* kind_of(session::Runtime runtime) noexcept {
  for (const RuntimeKind& row : kRuntimes)
    if (row.runtime == runtime) return &row;
  return nullptr;
}

// A function that is called only at the limit.
struct LimitFunction {
  session::Runtime runtime;
  std::string_view symbol;  // how its name begins in the symbol table
  std::string_view name;    // for readers
};

inline constexpr LimitFunction kLimitFunctions[] = {
    {session::Runtime::v8, "_ZN2v88internal2V823FatalProcessOutOfMemory",
     "v8::internal::V8::FatalProcessOutOfMemory"},
    {session::Runtime::v8, "_ZN2v85Utils16ReportOOMFailure", "v8::Utils::ReportOOMFailure"},
    // Of Node.js 24, which exports no other.
    {session::Runtime::v8, "_ZN4node15OOMErrorHandler", "node::OOMErrorHandler"},
    {session::Runtime::jvm, "_Z25report_java_out_of_memoryPKc", "report_java_out_of_memory"},
    // Callers of that, which the compiler may leave by a jump.
    {session::Runtime::jvm, "_ZN12MemAllocator10Allocation19check_out_of_memory",
     "MemAllocator::Allocation::check_out_of_memory"},
    {session::Runtime::jvm, "_ZN9Metaspace20report_metadata_oome",
     "Metaspace::report_metadata_oome"},
};

// Null: the function says nothing about a limit.
constexpr const LimitFunction* limit_function(std::string_view symbol) noexcept {
  for (const LimitFunction& row : kLimitFunctions)
    if (symbol.starts_with(row.symbol)) return &row;
  return nullptr;
}

}  // namespace oomrec::verdict
