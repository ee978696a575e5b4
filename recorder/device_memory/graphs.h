// Memory nodes of graphs: a block belongs to its graph, and is live once the graph was launched.
//
// A graph that has some is neither cloned nor instantiated twice at a time (CUDA's rules), so a
// block belongs to one graph, and a launch makes it live or ends it.
#pragma once

#include <cstdint>

#include "recorder/device_memory/memory.h"

namespace oomrec::recorder {

void on_graph_block(InHook, std::uint64_t graph, const DeviceMemory&) noexcept;
void on_graph_free(InHook, Vendor, std::uint64_t graph, std::uint64_t address) noexcept;
void on_graph_instantiated(InHook, Vendor, std::uint64_t graph, std::uint64_t executable) noexcept;
void on_graph_launched(InHook, Api, Vendor, std::uint64_t executable) noexcept;
void on_graph_destroyed(InHook, Vendor, std::uint64_t graph) noexcept;
void on_executable_destroyed(InHook, Vendor, std::uint64_t executable) noexcept;

}  // namespace oomrec::recorder
