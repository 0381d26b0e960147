#include "pg/random.hpp"

#include "pg/postgres.hpp"

extern "C" {
#include "common/pg_prng.h"
}

namespace jobq::pg {

double random_fraction() { return pg_prng_double(&pg_global_prng_state); }

} // namespace jobq::pg
