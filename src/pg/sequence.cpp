#include "pg/sequence.hpp"

#include "pg/error.hpp"
#include "pg/extension.hpp"

namespace jobq::pg {

namespace {

void draw(Oid sequence, std::int64_t* numbers, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    numbers[i] = nextval_internal(sequence, false);
  }
}

} // namespace

std::int64_t next_number(const char* sequence) {
  std::int64_t number = 0;
  guarded<draw>(relation(sequence), &number, std::size_t{1});
  return number;
}

std::vector<std::int64_t> next_numbers(const char* sequence, std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  guarded<draw>(relation(sequence), numbers.data(), count);
  return numbers;
}

} // namespace jobq::pg
