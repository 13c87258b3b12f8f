"""Values at the edges of a JSON Schema, and whether they are inside: what tests/cli/openapi_test.py
makes of the server's own document. It knows the keywords that the document uses and refuses others.
"""
import copy
import re

SIMPLE = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
KEYWORDS = {
    "$ref", "type", "enum", "const", "not", "anyOf", "allOf", "minimum", "maximum", "minLength", "maxLength",
    "pattern", "items", "minItems", "maxItems", "properties", "required", "additionalProperties",
    "propertyNames", "maxProperties", "description", "default",
}
# Of every type, and larger than anything that is asked for.
ANYTHING = [
    None, True, False, 0, 1, -1, 1.5, "", "x", "\0", "nonsense " * 40, [], [None], ["x"], [[]], {}, {"x": 1},
    2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 1e308,
]


def same(a, b) -> bool:
    """Equal, where true is not 1."""
    return type(a) is type(b) and a == b


class Schemas:
    """The schemas of one OpenAPI document."""

    def __init__(self, document: dict):
        self.components = document["components"]["schemas"]

    def resolve(self, schema: dict) -> dict:
        unknown = set(schema) - KEYWORDS
        if unknown:
            raise ValueError(f"got the keywords {unknown}, which this test doesn't know")
        while "$ref" in schema:
            schema = self.components[schema["$ref"].rpartition("/")[2]]
        return schema

    def holds(self, schema: dict, value) -> bool:
        schema = self.resolve(schema)
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(SIMPLE[name](value) for name in types):
            return False
        if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
            return False
        if "const" in schema and not same(value, schema["const"]):
            return False
        if "not" in schema and self.holds(schema["not"], value):
            return False
        if "anyOf" in schema and not any(self.holds(each, value) for each in schema["anyOf"]):
            return False
        if not all(self.holds(each, value) for each in schema.get("allOf", [])):
            return False
        checks = {str: self.holds_text, list: self.holds_list, dict: self.holds_object}
        if SIMPLE["number"](value):
            return schema.get("minimum", value) <= value <= schema.get("maximum", value)
        return checks[type(value)](schema, value) if type(value) in checks else True

    @staticmethod
    def holds_text(schema: dict, value: str) -> bool:
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return False
        return "pattern" not in schema or re.search(schema["pattern"].replace("$", r"\Z"), value) is not None

    def holds_list(self, schema: dict, value: list) -> bool:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        return all(self.holds(schema.get("items", {}), each) for each in value)

    def holds_object(self, schema: dict, value: dict) -> bool:
        if len(value) > schema.get("maxProperties", len(value)) or not set(schema.get("required", [])) <= set(value):
            return False
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        for key, each in value.items():
            if not self.holds(schema.get("propertyNames", {}), key):
                return False
            if key not in properties and more is False:
                return False
            if not self.holds(properties.get(key, more or {}), each):
                return False
        return True

    def alternatives(self, schema: dict) -> list[dict]:
        """The schemas that it is made of, each with a type of its own."""
        schema = self.resolve(schema)
        parts = [part for each in ("anyOf", "allOf") for part in schema.get(each, [])]
        return [schema, *(deeper for part in parts for deeper in self.alternatives(part))]

    def sample(self, schema: dict):
        """A small value inside; None where there is no other."""
        for part in self.alternatives(schema):
            for value in self.plain_samples(part):
                if self.holds(schema, value):
                    return value
        return None

    def plain_samples(self, schema: dict) -> list:
        objects = {key: self.sample(schema["properties"][key]) for key in schema.get("required", [])}
        lists = [self.sample(schema["items"])] * max(1, schema.get("minItems", 0)) if "items" in schema else []
        fixed = [schema["const"]] if "const" in schema else schema.get("enum", [])
        return [*fixed, objects, lists, "x", 1, schema.get("minimum"), True]

    def edges(self, schema: dict) -> list:
        """Values on both sides of each bound that the schema names, and some of every type."""
        values = list(ANYTHING)
        for part in self.alternatives(schema):
            values += [*part.get("enum", []), *([part["const"]] if "const" in part else [])]
            for bound in (part[key] for key in ("minimum", "maximum") if key in part):
                values += [bound, bound - 1, bound + 1, *([bound - 0.001, bound + 0.001] if abs(bound) < 2**31 else [])]
            for length in (part[key] for key in ("minLength", "maxLength") if key in part):
                values += ["a" * each for each in (length - 1, length, length + 1) if each >= 0]
            if "items" in part:
                values += self.lists(part)
        return values

    def lists(self, schema: dict) -> list:
        item = self.sample(schema["items"])
        lengths = [schema.get("minItems", 0), schema.get("maxItems", 2)]
        return [[item] * each for length in lengths for each in (length - 1, length, length + 1) if each >= 0]

    def variants(self, schema: dict, depth: int) -> list:
        """Edges of the value and, `depth` levels down, of what it holds."""
        values = self.edges(schema)
        if depth == 0:
            return values
        for part in self.alternatives(schema):
            if "properties" in part:
                sample = self.sample(part)
                for key, field in part["properties"].items():
                    values += [{**copy.copy(sample), key: each} for each in self.variants(field, depth - 1)]
                values += [{k: v for k, v in sample.items() if k != key} for key in part.get("required", [])]
            if "items" in part:
                values += [[each] for each in self.variants(part["items"], depth - 1)]
        return values
