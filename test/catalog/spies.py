"""Code of a role's own that runs while jobq is called, or calls jobq while somebody else runs it. It has the rights of that role and no other."""
from catalog.database import Session, said
from catalog.standings import tables

SPY = """
CREATE FUNCTION spy(about text) RETURNS text LANGUAGE sql IMMUTABLE RETURN about;
CREATE TABLE indexed AS SELECT 'x' AS a;
CREATE INDEX ON indexed ({role}.spy(a));
CREATE OR REPLACE FUNCTION spy(about text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RAISE WARNING 'spy is %', current_user;
    PERFORM * FROM jobq.claim();
    PERFORM jobq.enqueue(about);
    RAISE WARNING 'spy is %', current_user;
    RETURN about;
END
$$;
CREATE FUNCTION spy_on_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM {role}.spy('trigger'); RETURN NEW; END $$;
CREATE DOMAIN spied AS text CHECK ({role}.spy(VALUE) IS NOT NULL);
CREATE TYPE letter AS (text text);
CREATE FUNCTION letter_to_json(letter) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN to_jsonb({role}.spy('cast')); END $$;
CREATE CAST (letter AS jsonb) WITH FUNCTION letter_to_json AS IMPLICIT;
CREATE TABLE defaults (a text DEFAULT spy('default'));
CREATE TABLE checks (a text CHECK (spy(a) IS NOT NULL));
CREATE TABLE triggers (a text);
CREATE TRIGGER spy BEFORE INSERT ON triggers FOR EACH ROW EXECUTE FUNCTION spy_on_rows();
CREATE TABLE deferred (a text);
CREATE CONSTRAINT TRIGGER spy AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION spy_on_rows();
CREATE MATERIALIZED VIEW seen AS SELECT {role}.spy('view') WITH NO DATA;
"""
SPIED = ['INSERT INTO defaults DEFAULT VALUES', "INSERT INTO checks VALUES ('x')", "INSERT INTO triggers VALUES ('x')",
         "BEGIN; INSERT INTO deferred SELECT task FROM jobq.claim('tables'); SELECT 1 FROM jobq.claim('tables'); COMMIT",
         "INSERT INTO indexed SELECT task FROM jobq.claim('tables')", "SELECT jobq.enqueue('x'::spied)", "SELECT jobq.enqueue('t', ROW('x')::letter)",
         "SELECT jobq.enqueue('t', queue => 'tables'::spied)", "SELECT spy(task) FROM jobq.claim('tables')", 'REFRESH MATERIALIZED VIEW seen']
SPIED_BY_SUPERUSER = ['REFRESH MATERIALIZED VIEW {role}.seen', 'REINDEX TABLE {role}.indexed', 'ANALYZE {role}.indexed']


def spies(role, session, is_allowed):
    session.run("SET jobq.claim_in_transaction = 'allow'")
    session.run(SPY.format(role=f'tables_{role}'))
    for statement in SPIED:
        tables.fresh()
        yield from spied(role, session, statement, is_allowed)
        session.run('ROLLBACK')
        yield from tables.contradictions()
    superuser = Session()
    superuser.run("SET jobq.claim_in_transaction = 'allow'")
    for statement in SPIED_BY_SUPERUSER:
        yield from spied(role, superuser, statement.format(role=f'tables_{role}'), is_allowed)


def spied(role, session, statement, is_allowed):
    session.warnings.clear()
    error = session.ends(statement)
    if is_allowed != (error is None) or error and error.sqlstate != '42501':
        yield f'{role}: {statement}: {said(error)}'
    seen = {warning for warning in session.warnings if warning.startswith('spy is')}
    if not (seen == {f'spy is tables_{role}'} or not seen and not is_allowed):
        yield f'{role}: {statement}: {seen or "the spy did not run"}'
