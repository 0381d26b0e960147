#include "pg/owner.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

Oid owner_of(Oid function) {
  HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for function %u", function);
  Oid owner = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->proowner;
  ReleaseSysCache(tuple);
  return owner;
}

} // namespace

OwnerRights OwnerRights::of_function(Oid function) {
  return OwnerRights(guarded<owner_of>(function));
}

OwnerRights::OwnerRights(Oid owner) {
  GetUserIdAndSecContext(&caller_, &security_context_);
  SetUserIdAndSecContext(owner, security_context_ | SECURITY_LOCAL_USERID_CHANGE);
}

OwnerRights::~OwnerRights() { SetUserIdAndSecContext(caller_, security_context_); }

} // namespace jobq::pg
