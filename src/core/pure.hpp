// Floor 1 knows no server: a file of this floor that pulled in the server's headers, by whatever
// road, does not compile. Every body of core/ includes this one last.
#pragma once

#ifdef POSTGRES_H
#error "core/ is pure C++: it must not see postgres.h"
#endif
