"""What must hold in the tables of jobq at every instant (promise 1): one line a job, a key for each live keyed job and for no other."""
LINES = ['delayed', 'ready', 'lease', 'finished']
LINE = ' UNION ALL '.join(f"SELECT job_id, queue_id, '{line}' AS line FROM jobq.{line}" for line in LINES)
LIVE = ' UNION ALL '.join(f'SELECT job_id FROM jobq.{line}' for line in LINES if line != 'finished')

NONE_OF = {
    'a job that is not in exactly one line':
        f'SELECT job_id, count(line), min(line), max(line) FROM jobq.job LEFT JOIN ({LINE}) AS l USING (job_id) GROUP BY 1 HAVING count(line) <> 1',
    'a line without its job':
        f'SELECT job_id, line FROM ({LINE}) AS l WHERE NOT EXISTS (SELECT FROM jobq.job AS j WHERE j.job_id = l.job_id)',
    'a line of another queue than its job':
        f'SELECT job_id, line FROM ({LINE}) AS l JOIN jobq.job AS j USING (job_id) WHERE l.queue_id <> j.queue_id',
    'a ready job of another group or priority than its job':
        """SELECT job_id, r.group_key, j.group_key, r.priority, j.priority FROM jobq.ready AS r JOIN jobq.job AS j USING (job_id)
            WHERE (r.group_key, r.priority) IS DISTINCT FROM (j.group_key, j.priority)""",
    'a weight of a group without a queue':
        'SELECT queue_id, group_key FROM jobq.group_weight AS w WHERE NOT EXISTS (SELECT FROM jobq.queue AS q WHERE q.queue_id = w.queue_id)',
    'a job without a queue':
        'SELECT job_id FROM jobq.job AS j WHERE NOT EXISTS (SELECT FROM jobq.queue AS q WHERE q.queue_id = j.queue_id)',
    'a key without a live job':
        f'SELECT job_key, job_id FROM jobq.key WHERE job_id NOT IN ({LIVE})',
    'two live jobs with one key':
        f"""SELECT j.queue_id, j.job_key, array_agg(job_id) FROM jobq.job AS j JOIN ({LIVE}) AS l USING (job_id) LEFT JOIN jobq.lease USING (job_id)
            WHERE j.job_key IS NOT NULL AND replaced_by IS NULL GROUP BY 1, 2 HAVING count(*) > 1""",
    'a live keyed job without its key':
        f"""SELECT job_id FROM jobq.job AS j JOIN ({LIVE}) AS l USING (job_id) LEFT JOIN jobq.lease USING (job_id)
            WHERE j.job_key IS NOT NULL AND replaced_by IS NULL
              AND NOT EXISTS (SELECT FROM jobq.key AS k WHERE k.job_id = j.job_id AND k.job_key = j.job_key AND k.queue_id = j.queue_id)""",
    'a failure without its job':
        'SELECT job_id, attempt FROM jobq.failure AS f WHERE NOT EXISTS (SELECT FROM jobq.job AS j WHERE j.job_id = f.job_id)',
    'a death without a reason':
        "SELECT job_id FROM jobq.finished WHERE state = 'dead' AND coalesce(reason, '') = ''",
}

# Where each completion leaves a row in chaos.effect, in its own transaction. Completed jobs of some queues are gone with it.
NONE_OF_EFFECTS = {
    'an effect of a job that is not completed':
        "SELECT job_id, attempt, label FROM chaos.effect AS e WHERE NOT EXISTS (SELECT FROM jobq.finished AS f"
        " WHERE f.job_id = e.job_id AND f.attempt = e.attempt AND f.state = 'completed')"
        " AND EXISTS (SELECT FROM jobq.job AS j WHERE j.job_id = e.job_id)",
    'a completed job without its effect':
        "SELECT job_id, attempt FROM jobq.finished AS f WHERE state = 'completed' AND NOT EXISTS (SELECT FROM chaos.effect AS e WHERE e.job_id = f.job_id)",
    'a completed job with the result of another':
        """SELECT job_id, label, result FROM jobq.finished JOIN chaos.effect USING (job_id)
            WHERE state = 'completed' AND result IS DISTINCT FROM jsonb_build_object('by', label, 'job', job_id)""",
    'an effect that exists twice':
        'SELECT job_id, count(*) FROM chaos.effect GROUP BY 1 HAVING count(*) > 1',
}


def contradictions(db, effects=False):
    for what, statement in (NONE_OF | NONE_OF_EFFECTS if effects else NONE_OF).items():
        for row in db.execute(statement).fetchmany(3):
            yield what, row
