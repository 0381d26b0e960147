#include "pg/invalidation.hpp"

#include "pg/error.hpp"

namespace jobq::pg {

namespace {

using Forget = void (*)(Oid);
static_assert(sizeof(Forget) == sizeof(Datum));

void relay(Datum forget, Oid relation) { reinterpret_cast<Forget>(forget)(relation); }

void listen(Forget forget) {
  CacheRegisterRelcacheCallback(relay, reinterpret_cast<Datum>(forget));
}

Oid find_trigger_relation(FunctionCallInfo fcinfo) {
  if (!CALLED_AS_TRIGGER(fcinfo))
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("the function can only be called as a trigger")));
  return RelationGetRelid(reinterpret_cast<TriggerData*>(fcinfo->context)->tg_relation);
}

} // namespace

void on_invalidation(Forget forget) { guarded<listen>(forget); }

void invalidate(Oid relation) { guarded<CacheInvalidateRelcacheByRelid>(relation); }

Oid trigger_relation(FunctionCallInfo fcinfo) { return guarded<find_trigger_relation>(fcinfo); }

} // namespace jobq::pg
