// Sizes in the environment: plain, or with K, M or G.
#pragma once

#include <cstddef>

namespace fake_gpu {

std::size_t parse_size(const char*& text);  // and advances `text` behind it
std::size_t size_from(const char* variable, std::size_t otherwise);  // otherwise: it is not set

}  // namespace fake_gpu
