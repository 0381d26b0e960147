# The statements of plain.sql, visible.sql and jobq.sql: by name, and with the parameters that a driver sends.

import re


def read_statements(path):
    """(what stands above the first name, the statements of a file by the name in the line above each)."""
    parts = re.split(r"^-- name: (\w+)\n", path.read_text(), flags=re.MULTILINE)
    return parts[0], {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


def number_parameters(text):
    """(text with $1 for its first :word and so on, the words in that order)."""
    names = []

    def number(match):
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return re.sub(r"(?<!:):([a-z]\w*)", number, text), names
