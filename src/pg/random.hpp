// Chance, for spreading what would otherwise happen all at once.
#pragma once

namespace jobq::pg {

// In [0, 1).
double random_fraction();

} // namespace jobq::pg
