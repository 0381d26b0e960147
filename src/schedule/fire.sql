-- Firing by hand, at an instant of one's choice: for tests. Nobody but the owner may.

CREATE FUNCTION jobq.fire_schedules(
  now timestamp with time zone DEFAULT NULL,
  undisturbed_since timestamp with time zone DEFAULT NULL
) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_fire_schedules';

COMMENT ON FUNCTION jobq.fire_schedules IS
  'fires what is due at that instant, as a manager would; what came before undisturbed_since is late; for tests';
