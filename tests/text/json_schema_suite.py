"""Holds grammars of JSON schemas against the JSON Schema Test Suite and against `jsonschema`.

    json_schema_suite.py --probe grammar_probe --suite tests/golden/json-schema-suite --model DIR

Of each schema of the suite that is not refused: no invalid instance may be taken, valid ones must
be, and texts of random tokens that the grammar allows must be JSON that keeps the schema. Exits with
1 and a list when anything differs.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import jsonschema

WALKS = 6
# Schemas of the suite that a grammar can keep; the others are refused.
ACCEPTED = 165
# Valid instances that a grammar doesn't take: it is stricter than the schema, never looser. An
# integer has one spelling, formats are kept, and properties come in the schema's order.
STRICTER = {
    "allOf: allOf",
    "const: const with -2.0 matches integer and float types",
    "const: const with 0 does not match other zero-like types",
    "const: const with 1 does not match true",
    "const: const with object",
    "const: float and integers are equal up to 64-bit representation limits",
    "enum: enum with 0 does not match false",
    "enum: enum with 1 does not match true",
    "enum: enum with [0] does not match [false]",
    "enum: enum with [1] does not match [true]",
    "format: date format",
    "format: date-time format",
    "format: duration format",
    "format: email format",
    "format: hostname format",
    "format: ipv4 format",
    "format: ipv6 format",
    "format: time format",
    "format: uri format",
    "format: uuid format",
    "type: integer type matches integers",
}
REFUSED = (
    "got the keywords",
    "got a oneOf whose options may overlap",
    "got a schema of another kind",
    "Unsatisfiable schema",
    "Unknown format",
    "Expected positive integer for",
    "Value for 'multipleOf' has too many digits",
    "patternProperty regexes",
)
UNKNOWN_TO_PYTHON = r"\p{Letter}"


def cases(suite: Path):
    for file in sorted(suite.glob("*.json")):
        for group in json.loads(file.read_text()):
            yield f"{file.stem}: {group['description']}", group


def in_order_of(schema, value):
    """The instance with its properties in the schema's order, as a grammar has them."""
    if not isinstance(value, dict) or not isinstance(schema, dict):
        return value
    names = [name for name in schema.get("properties", {}) if name in value]
    names += [name for name in schema.get("required", []) if name in value and name not in names]
    names += [name for name in value if name not in names]
    return {name: value[name] for name in names}


def ask(arguments, groups):
    requests = []
    for seed, (_, group) in enumerate(groups):
        texts = [
            json.dumps(in_order_of(group["schema"], test["data"]), ensure_ascii=False)
            for test in group["tests"]
        ]
        request = {"schema": group["schema"], "texts": texts, "walks": WALKS, "seed": seed}
        requests.append(json.dumps(request) + "\n")
    done = subprocess.run(
        [arguments.probe, arguments.model],
        input="".join(requests).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def check_instances(name, group, answer):
    wrong = []
    missed = False
    for test, taken in zip(group["tests"], answer["taken"]):
        if taken and not test["valid"]:
            wrong.append(f"{name}: took {json.dumps(test['data'])}, which is invalid")
        if taken is False and test["valid"]:
            missed = True
            if name not in STRICTER:
                wrong.append(f"{name}: didn't take {json.dumps(test['data'])}, which is valid")
    if name in STRICTER and not missed:
        wrong.append(f"{name}: is no longer stricter")
    return wrong


def check_walks(name, group, answer):
    if UNKNOWN_TO_PYTHON in json.dumps(group["schema"]).replace("\\\\", "\\"):
        return []
    validator = jsonschema.Draft202012Validator(group["schema"])
    wrong = []
    for text in answer["walks"]:
        try:
            validator.validate(json.loads(text))
        except (ValueError, jsonschema.ValidationError) as error:
            wrong.append(f"{name}: allowed {text!r}: {str(error).splitlines()[0]}")
    return wrong


def check_refusal(name, reason):
    known = reason.removeprefix("[grammar] ").startswith(REFUSED)
    return [] if known else [f"{name}: refused for another reason: {reason}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("probe", "suite", "model"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    groups = list(cases(Path(arguments.suite)))
    answers = ask(arguments, groups)
    wrong = []
    accepted = walks = 0
    for (name, group), answer in zip(groups, answers, strict=True):
        if "refused" in answer:
            wrong += check_refusal(name, answer["refused"])
            continue
        accepted += 1
        walks += len(answer["walks"])
        wrong += check_instances(name, group, answer) + check_walks(name, group, answer)
    if accepted != ACCEPTED:
        wrong.append(f"accepted {accepted} schemas, expected {ACCEPTED}")
    if walks < 5 * accepted:
        wrong.append(f"got {walks} texts of random tokens, expected more")
    for text in wrong:
        print(text)
    print(f"{len(groups)} schemas, {accepted} accepted, {walks} texts, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
