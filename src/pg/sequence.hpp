// Numbers that are given once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jobq::pg {

// The next value, or the next so many in ascending order, of a sequence of the extension.
std::int64_t next_number(const char* sequence);
std::vector<std::int64_t> next_numbers(const char* sequence, std::size_t count);

} // namespace jobq::pg
