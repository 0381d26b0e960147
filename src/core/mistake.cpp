#include "core/mistake.hpp"

#include <algorithm>

#include "core/pure.hpp"

namespace jobq::core {

namespace {

constexpr std::size_t kLongest = 40;

bool is_printable(char character) { return character >= ' ' && character <= '~'; }

} // namespace

std::string quoted(std::string_view part) {
  std::string_view begin = part.substr(0, kLongest);
  if (!std::ranges::all_of(begin, is_printable)) return {};
  return " \"" + std::string(begin) + (begin.size() < part.size() ? "...\"" : "\"");
}

} // namespace jobq::core
