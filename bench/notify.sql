-- What a plain queue does so that its workers need not poll: each insert notifies the listeners of its queue. Loaded behind
-- plain.sql by bench/wake only. A channel for each queue, so that other queues' workers need not look; no payload, so that
-- a transaction that enqueues many sends one.

CREATE FUNCTION plain.notify() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('plain.' || NEW.queue, '');
    RETURN NULL;
END
$$;

CREATE TRIGGER notify
AFTER INSERT ON plain.job
FOR EACH ROW EXECUTE FUNCTION plain.notify();
