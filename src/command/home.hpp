// Where schedules and SQL jobs are at home: in this database of this cluster, or elsewhere, because
// the tables came here by a dump or a clone. What is not at home rests.
#pragma once

namespace jobq::command {

bool is_home();

// The first schedule or SQL job makes the home here. To be called before it is made.
void settle();

// From now on home is here, whatever it was.
void settle_anew();

// A WARNING with the hint to adopt, if home is elsewhere.
void warn_if_away();

} // namespace jobq::command
