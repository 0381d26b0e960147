-- Making what came from elsewhere at home.

CREATE FUNCTION jobq.adopt() RETURNS void
LANGUAGE c AS 'MODULE_PATHNAME', 'jobq_adopt';

COMMENT ON FUNCTION jobq.adopt() IS
  'lets schedules and SQL jobs that came by a restored dump or a clone run here from now on';
