// The one place that knows what differs between the majors 15 to 18.
#pragma once

#include "pg/postgres.hpp"

// Before 16 the server marks no symbol as exported on Linux; the module hides all but its doors.
#define JOBQ_EXPORT __attribute__((visibility("default")))

#if PG_VERSION_NUM >= 180000
#define JOBQ_MODULE_MAGIC PG_MODULE_MAGIC_EXT(.name = "jobq", .version = JOBQ_VERSION)
#else
#define JOBQ_MODULE_MAGIC PG_MODULE_MAGIC
#endif
