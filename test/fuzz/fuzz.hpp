// What the fuzzers have in common: each says what is to be held against the fuzzer's bytes, by the
// expectations of GoogleTest, the first of which that fails ends the run.
#pragma once

#include "unit/pick.hpp"

#include <cstdint>
#include <limits>

#include <fuzzer/FuzzedDataProvider.h>
#include <gtest/gtest.h>

namespace jobq::core {

using Bytes = FuzzedDataProvider;

// The one function of a fuzzer.
void hold(Bytes& bytes);

// Wide enough for what int64 cannot hold.
using Wide = __int128;

template <typename Number>
Number any(Bytes& bytes) {
  return bytes.ConsumeIntegral<Number>();
}

// From 0 to the type's end.
template <typename Number>
Number any_count(Bytes& bytes) {
  return bytes.ConsumeIntegralInRange<Number>(0, std::numeric_limits<Number>::max());
}

inline Pick pick_by(Bytes& bytes) {
  return [&bytes](std::int64_t least, std::int64_t most) {
    return bytes.ConsumeIntegralInRange(least, most);
  };
}

} // namespace jobq::core
