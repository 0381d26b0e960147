// What reads without the executor can see: all that was committed until now (in READ COMMITTED) and
// all that this transaction has done.
#pragma once

#include <cstdint>

#include "pg/unwinding.hpp"

namespace jobq::pg {

enum class View {
  transaction, // as the isolation level says
  latest,      // all that is committed by now, in every isolation level
};

class FreshSnapshot {
 public:
  explicit FreshSnapshot(View view = View::transaction);
  ~FreshSnapshot();
  FreshSnapshot(const FreshSnapshot&) = delete;
  FreshSnapshot& operator=(const FreshSnapshot&) = delete;

  // The same with a newer view.
  void renew();

  // Another number for each view that this process has taken.
  static std::uint64_t current();

 private:
  View view_;
  OrderlyExit orderly_;
};

} // namespace jobq::pg
