"""Every value of every parameter."""
from catalog.database import db, flaws, said
from catalog.standings import LASTING_COLUMNS, VALID, tables

# What each type has at its ends and beyond what is expected.
DEEP = 5000
HARD = {
    'bool': ['false', 'true'],
    'int4': ['-2147483648', '-1', '0', '1', '2147483647'],
    'int8': ['-9223372036854775808', '-1', '0', '9223372036854775807'],
    'text': ['', ' ', '\'"\\%s$1{}', 'ä' * 31, 'x' * 64, '€' * 86, 'x' * 1_000_000],
    'interval': ['0', '-1 us', '1 mon', '-178000000 years', '178000000 years', '2147483647 days 2562047788 h', '-2147483648 days'],
    'timestamptz': ['-infinity', '4714-11-24 00:00:00+00 BC', '2000-01-01', '294276-12-31 23:59:59.999999+00', 'infinity'],
    'jsonb': ['null', 'true', '1', '-1e1000', '""', '"text"', '{}', '[]', '[null]', '[[]]', '[{}]', '[' * DEEP + ']' * DEEP,
              '[' + '{"a":' * DEEP + '1' + '}' * DEEP + ']', '["' + 'x' * 1_000_000 + '"]', '[' + '1,' * 9999 + '1]'],
    '_int4': ['{}', '{NULL}', '{1,NULL}', '{{1}}', '{{{1}}}', '[5:5]={1}', '[-2147483648:-2147483648]={1}', '{1,1}'],
    '_int8': ['{}', '{NULL}', '{1,NULL}', '{{1}}', '{{{1}}}', '[5:5]={1}', '[-2147483648:-2147483648]={1}', '{1,1}'],
    '_text': ['{}', '{NULL}', '{tables,NULL}', '{{tables}}', '{{{tables}}}', '[5:5]={tables}', '[-2147483648:-2147483648]={tables}', '{tables,tables}', '{""}']}
HARD_FOR = {'job_id': ['<delayed>', '<ready>', '<running>', '<replaced>', '<expired>', '<completed>', '<cancelled>', '<dead>'],
            'job_key': ['key', 'ready', 'delayed', 'replaced'], 'job_key_mode': ['keep', 'preserve_run_at', 'reject'], 'max_jobs': ['10000']}
if db.connection.info.server_version >= 170000:
    HARD['interval'] += ['-infinity', 'infinity']


class Matrix:
    def __init__(self, caller):
        self.caller = caller

    def ends(self, statement, wrong):
        """What the statement ends with; adds what is wrong with that, whatever the statement is."""
        self.caller.warnings.clear()
        error = self.caller.ends(statement)
        found = [warning for warning in self.caller.warnings if 'hijacked' in warning] + list(flaws(error) if error else [])
        if self.caller.rows('SELECT CURRENT_USER') != [('tables_caller',)]:
            found.append('the caller is another one afterwards')
        if changed := tables.changed():
            found += [f'it raised, and changed {changed}'] if error else tables.contradictions()
            tables.fresh()
        wrong += [f'{flaw}: {said(error)}: {statement}' for flaw in found]
        return error

    def effect(self, call):
        """What a call leaves, apart from ids and times; the call is made when the tables are fresh."""
        tables.fresh()
        error = self.caller.ends(call())
        left = db.rows(LASTING_COLUMNS)
        tables.fresh()
        return said(error), left

    def check(self, function):
        wrong = []
        tables.fresh()
        call = tables.call(function)
        error = self.ends(call, wrong)
        if error and error.sqlstate != '39P01':
            wrong.append(f'refused with a value for each parameter: {said(error)}: {call}')
        self.ends(function.call({p.name: 'NULL' for p in function.parameters}), wrong)
        for parameter in function.parameters:
            self.check_null(function, parameter, wrong)
            for value in HARD[parameter.type] + HARD_FOR.get(parameter.name, []):
                self.check_value(function, parameter, value, wrong)
        return wrong

    def check_null(self, function, parameter, wrong):
        call = tables.call_with(function, parameter, 'NULL')
        error = self.ends(call, wrong)
        if not parameter.has_default:
            if said(error) != f'22004 {parameter.name} must not be NULL':
                wrong.append(f'NULL is not refused by the name of the parameter: {said(error)}: {call}')
        elif self.effect(lambda: tables.call_with(function, parameter, 'NULL')) != self.effect(lambda: tables.call_without(function, parameter)):
            wrong.append(f'NULL does not mean the default: {call}')

    def check_value(self, function, parameter, value, wrong):
        call = tables.call_with(function, parameter, tables.literal(parameter, value))
        error = self.ends(call, wrong)
        for right in self.rules(parameter, value):
            if said(error) != right:
                wrong.append(f'not {right}: {said(error)}: {call}')

    def rules(self, parameter, value):
        """What is known of the end of a call by its value alone."""
        if parameter.type.startswith('_'):
            if 'NULL' in value:
                yield f'22004 {parameter.name} must not contain NULL'
            elif value.startswith('{{'):
                yield f'2202E {parameter.name} must have one dimension'
            elif value.startswith('['):
                yield 'accepted'
        elif parameter.type == 'jsonb' and VALID[parameter.name].startswith('[') and not value.startswith('['):
            yield f'22023 {parameter.name} must be a JSON array'
        elif parameter.type == 'timestamptz' and 'infinity' in value and (parameter.name, value) not in (('starts_at', '-infinity'), ('ends_at', 'infinity')):
            yield f'22023 {parameter.name} must be finite'
