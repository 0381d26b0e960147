#include "unit/hunger_model.hpp"

#include "fuzz/fuzz.hpp"

namespace jobq::core {

void hold(Bytes& bytes) {
  HungerModel model(pick_by(bytes));
  while (bytes.remaining_bytes() > 0) model.step();
}

} // namespace jobq::core
