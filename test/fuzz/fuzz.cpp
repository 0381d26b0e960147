#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  GTEST_FLAG_SET(throw_on_failure, true); // nobody catches it: the fuzzer keeps the input
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  jobq::core::Bytes bytes(data, size);
  jobq::core::hold(bytes);
  return 0;
}
