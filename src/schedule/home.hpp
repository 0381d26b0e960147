// Where the schedules are at home: in this database of this cluster, or elsewhere, because the
// tables came here by a dump or a clone. Schedules that are not at home rest.
#pragma once

namespace jobq::schedule {

bool is_home();

// The first schedule makes its home here. To be called before it is made.
void settle();

} // namespace jobq::schedule
