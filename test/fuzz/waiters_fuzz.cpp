#include "unit/waiters_model.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {

void hold(Bytes& bytes) {
  WaitersModel model(pick_by(bytes));
  while (bytes.remaining_bytes() > 0) {
    model.step();
    model.check();
  }
}

} // namespace jobq::core
