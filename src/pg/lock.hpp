// A queue as an object that can be locked, like a table. Whatever moves a job shares it; changes of
// its settings exclude each other and nobody else; drop_queue has it alone.
#pragma once

#include <cstdint>

#include "pg/postgres.hpp"

namespace jobq::pg {

enum class LockStrength { shared, change, exclusive };

// Until the transaction's end. Also takes in what other sessions changed in the catalogs and
// queues' settings. A lock's key has 48 bits for the id: two queues 2^48 apart share a lock.
void lock_object(Oid relation, std::int64_t id, LockStrength strength);

} // namespace jobq::pg
