// The owner's rights for the length of a call, as SECURITY DEFINER gives them but without its
// cost. An abort puts the caller back as well.
#pragma once

#include "pg/postgres.hpp"

namespace jobq::pg {

class OwnerRights {
 public:
  static OwnerRights of_function(Oid function);
  explicit OwnerRights(Oid owner);
  ~OwnerRights();
  OwnerRights(const OwnerRights&) = delete;
  OwnerRights& operator=(const OwnerRights&) = delete;

  Oid caller() const { return caller_; }

 private:
  Oid caller_ = InvalidOid;
  int security_context_ = 0;
};

} // namespace jobq::pg
