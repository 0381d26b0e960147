// What a test that acts at random goes by: a generator in the unit tests, the fuzzer's bytes in
// test/fuzz.
#pragma once

#include <cstdint>
#include <functional>
#include <random>

namespace jobq::core {

// A number from least to most, both included.
using Pick = std::function<std::int64_t(std::int64_t least, std::int64_t most)>;

inline Pick pick_at_random(std::uint32_t seed) {
  return [random = std::mt19937(seed)](std::int64_t least, std::int64_t most) mutable {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
}

} // namespace jobq::core
