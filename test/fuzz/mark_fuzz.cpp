#include "unit/mark_model.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {

void hold(Bytes& bytes) {
  MarkModel model(pick_by(bytes), MarkRule::right);
  while (bytes.remaining_bytes() > 0) {
    model.step();
    EXPECT_FALSE(model.is_late());
  }
}

} // namespace jobq::core
