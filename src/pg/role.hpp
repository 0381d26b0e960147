// Roles of the server, by number and by name.
#pragma once

#include <optional>
#include <string>

#include "pg/postgres.hpp"

namespace jobq::pg {

std::optional<std::string> role_name(Oid role);
std::optional<Oid> find_role(const std::string& name);

// Whether the role may do what the other may: it is that role, a member that inherits, or a
// superuser. A role that is gone gives nothing to others.
bool has_rights_of(Oid role, Oid other);

bool is_superuser(Oid role);

// Whether this is a place where what is called must not reach beyond: a maintenance command, or a
// refresh of a view, runs somebody's function with rights that are not the caller's.
bool is_restricted();

} // namespace jobq::pg
