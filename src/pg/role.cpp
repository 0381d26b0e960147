#include "pg/role.hpp"

#include "pg/error.hpp"

extern "C" {
#include "miscadmin.h"
#include "utils/acl.h"
}

namespace jobq::pg {

namespace {

char* name_or_null(Oid role) { return GetUserNameFromId(role, true); }

Oid oid_or_invalid(const char* name) { return get_role_oid(name, true); }

} // namespace

std::optional<std::string> role_name(Oid role) {
  const char* name = guarded<name_or_null>(role);
  return name == nullptr ? std::nullopt : std::optional<std::string>(name);
}

std::optional<Oid> find_role(const std::string& name) {
  Oid role = guarded<oid_or_invalid>(name.c_str());
  return role == InvalidOid ? std::nullopt : std::optional(role);
}

bool has_rights_of(Oid role, Oid other) { return guarded<has_privs_of_role>(role, other); }

bool is_superuser(Oid role) { return guarded<superuser_arg>(role); }

bool is_restricted() { return InSecurityRestrictedOperation(); }

} // namespace jobq::pg
