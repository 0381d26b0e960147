# What jobs carry, as SQL expressions: the server makes them, so that no client has to send them.


def payload_text(size, number):
    """A payload of so many bytes of text; number is an SQL expression."""
    padding = f"repeat('x', {size} - 19 - length({number}::text))"
    return f"""('{{"n": ' || {number} || ', "text": "' || {padding} || '"}}')::jsonb"""


def payload_array(size, count):
    return f"(SELECT jsonb_agg({payload_text(size, 'n')}) FROM generate_series(1, {count}) AS n)"
