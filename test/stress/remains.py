"""What is left when everybody has gone: no locks, no transactions, little memory, a short log."""
import collections
import re

from known import Known


class Remains(Known):
    def sweeps(self):
        """Where none but the crowd swept, and all heard of it: the counts are the failures. A replaced job's is cancelled, which no count shows."""
        counted = sum(operation['answer'][1] + operation['answer'][2] for operation in self.story.done('sweep'))
        expired = collections.Counter(self.jobs[job].key is not None for job, failures in self.failures.items() if job in self.jobs
                                      for failure in failures.values() if failure.kind == 'expired')
        least = expired[False] if self.run['mode'] == 'calm' and not self.run['managed'] else 0
        # failures go with their jobs
        if not least <= counted <= expired[False] + expired[True] + sum(self.gone.values()):
            self.wrong('the sweeps counted other than the failures of kind expired', counted, expired)

    def what_is_left(self):
        """Nothing holds a lock, a snapshot or a transaction when everybody has gone."""
        self.none_of({
            'a prepared transaction': 'SELECT gid FROM pg_prepared_xacts',
            'a client that is still there':
                """SELECT application_name, state, query FROM pg_stat_activity
                WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()""",
            'a lock of nobody':
                """SELECT locktype, mode FROM pg_locks AS l
                WHERE pid IS NULL OR NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = l.pid)""",
            'an old transaction':
                """SELECT backend_type, xact_start FROM pg_stat_activity
                WHERE backend_type ~ '^jobq' AND xact_start < clock_timestamp() - interval '5 s'""",
        })

    def lanes(self):
        """Managers look for ready jobs that claims would miss; what they find counts where no transaction is under way."""
        self.none_of({
            'claims would have missed a job': 'SELECT queue, priority, found_too_high FROM jobq.lanes WHERE found_too_high <> 0',
            'a lane of a transaction that is over': 'SELECT queue, priority, transactions FROM jobq.lanes WHERE transactions <> 0',
        })

    def memory(self):
        """Of each process of jobq, from its first third to its last."""
        sizes = collections.defaultdict(list)
        for event in self.story.by['memory']:
            sizes[event['what'], event['pid']].append(event['kilobytes'])
        for process, kilobytes in sizes.items():
            third = len(kilobytes) // 3
            if third >= 10 and min(kilobytes[-third:]) > max(kilobytes[:third]) + 2048:
                self.wrong('a process grows', process, max(kilobytes[:third]), min(kilobytes[-third:]))

    def the_server_log(self):
        """No deadlock, no internal error, no crash but the nemesis' own; and jobq's processes say little:
        a line for a death, some for a strike."""
        for pattern in (r'deadlock detected', r'sweep could not', r'would have missed a job', r'PANIC:', r'TRAP:', r'was terminated by signal (?!9\b)\d+',
                        r' XX\d\d\d .*(?:ERROR|FATAL):'):
            line = re.search(f'^.*{pattern}.*$', self.server_log, re.MULTILINE)
            if line:
                self.wrong('the server log has', line[0])
        lines = re.findall(r'^\S+ \S+ \S+ \[\d+\] jobq .*$', self.server_log, re.MULTILINE)
        deaths = sum(' is dead: ' in line for line in lines)
        failures = sum(map(len, self.failures.values()))
        if deaths > failures or len(lines) - deaths > 20 + 20 * len(self.story.by['strike']):
            self.wrong('the processes of jobq fill the log', len(lines), deaths, failures)
