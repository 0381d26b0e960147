// The rows of a set-returning function, gathered in memory that spills to disk.
#pragma once

#include <initializer_list>
#include <span>

#include "pg/call.hpp"

namespace jobq::pg {

class ResultSet {
 public:
  explicit ResultSet(const Call& call);
  void add(std::span<const Value> values);
  void add(std::initializer_list<Value> values) {
    add(std::span<const Value>(values.begin(), values.size()));
  }
  // What the door returns when the set is complete.
  Datum done() const { return 0; }

 private:
  ReturnSetInfo* info_;
};

} // namespace jobq::pg
