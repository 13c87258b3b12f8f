"""What compare_with_transformers.py compares: texts, conversations, and pieces of Jinja."""

import random

SEED = 20250701

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "I'm, you're, WE'LL, they'd've 'tis ſ'ſ I'S don'T",
    "0123456789 3.14159 1,000,000 ١٢٣ ⅷ ² 10^-7 v1.2.3",
    "你好,世界。今天天气怎么样?",
    "日本語のテキスト、カタカナ、ひらがな",
    "한국어 문장입니다. 각",
    "العربية مع أرقام ١٢٣ ועברית",
    "ไทยไม่มีช่องว่าง हिन्दी में क्षत्रिय",
    "e\u0301 é n\u0303 a\u0308\u0301 \u1112\u1161\u11ab \u212b \u2126 \ufb01 \u0344 q\u0307\u0323",
    "\u0301\u0301 leading marks",
    "line\r\nline\rline\n\n\n  \r\n\tend\r\n",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇫🇷 ☕️ 🤷🏿‍♀️",
    "a" + " " * 50 + "b" + "\t" * 20 + "c" + "\n" * 30 + "d   ",
    " \u00a0\u2003\u3000\u200b\u2028\u2029\ufeff x \u0085 y",
    "tabs\tand  double  spaces   triple",
    "x = {'a': [1, 2, 3], \"b\": None}  # code\n    return x\n",
    "https://example.com/a/b?c=d&e=%20#f user@example.com",
    "!!! ... --- ??? ~~~ ### $$$ ((())) <<<>>> ||| <| |> <|x|> </x>",
    "\x00\x01\x02\x7f\x80\x9f control",
    "\U0001d11e \U00020000 \U0010ffff \ufffd \ufffe \ufdd0",
    "Ünïcödé ÀÉÎÕÜ ßẞ ǅ ŉ İ ı",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "A quick brown fox; jumps over the lazy dog. " * 40,
]


def random_texts(count):
    rng = random.Random(SEED)
    ranges = [
        (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x900, 0x97F),
        (0x1100, 0x11FF), (0x2000, 0x206F), (0x2190, 0x27BF), (0x3040, 0x30FF), (0x4E00, 0x9FFF),
        (0xAC00, 0xD7A3), (0xFE00, 0xFE0F), (0x1F300, 0x1FAFF), (0, 0x10FFFF),
    ]  # fmt: skip
    texts = []
    for _ in range(count):
        chars = []
        for _ in range(rng.randint(1, 60)):
            code = rng.randint(*rng.choice(ranges))
            chars.append(chr(code) if not 0xD800 <= code <= 0xDFFF else " ")
        texts.append("".join(chars))
    return texts


def token_texts(added_tokens):
    """Every added token, alone, in text, repeated, cut, and glued to its neighbour."""
    contents = [token["content"] for token in added_tokens]
    texts = []
    for index, content in enumerate(contents):
        other = contents[(index + 1) % len(contents)]
        texts += [
            content,
            f"before {content} after",
            f"x{content}{content}y{other}",
            content[: len(content) // 2],
            content[len(content) // 2 :],
            content[1:-1],
            f"<{content}>",
            content + content[:-1],
            f"\n{content}\n",
        ]
    return texts


TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'Weather <b>"now"</b> & later, in °C für Köln',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Köln", "北京"]},
                "days": {"type": "integer", "default": 3, "maximum": 1e16, "step": 0.1},
                "nothing": {"type": "null", "default": None, "flag": True, "empty": {}, "list": []},
            },
            "required": ["city"],
        },
    },
}
CALL = {
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Köln", "t": 1.0}},
}
TEXT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **fields):
    return {"role": "assistant", "content": content, **fields}


def parts(*items):
    named = {"image": {"type": "image"}, "video": {"type": "video"}}
    return [named.get(item, {"type": "text", "text": item}) for item in items]


SYSTEM = {"role": "system", "content": "Be brief."}
CONVERSATIONS = {
    "text": {"messages": [user("Hello")]},
    "no generation prompt": {"messages": [user("Hello")], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, user("Hello")]},
    "system parts": {
        "messages": [{"role": "system", "content": parts("Be ", "brief.")}, user("x")]
    },
    "late system": {"messages": [user("a"), SYSTEM, user("b")]},
    "image": {"messages": [user(parts("image", "What is this?"))]},
    "text first": {"messages": [user(parts("What is this?", "image"))]},
    "several images": {"messages": [user(parts("image", "image", "Compare", "image", "these."))]},
    "video": {"messages": [user(parts("video", "Describe."))]},
    "image and video": {"messages": [user(parts("image", "and", "video"))]},
    "vision ids": {
        "messages": [
            user(parts("image", "image", "video", "?")),
            assistant("a"),
            user(parts("image")),
        ],
        "kwargs": {"add_vision_id": True},
    },
    "no vision ids": {"messages": [user(parts("image", "?"))], "kwargs": {"add_vision_id": False}},
    "turns": {
        "messages": [SYSTEM, user("a"), assistant("b"), user("c"), assistant("d\n"), user("  e  ")]
    },
    "ends with assistant": {
        "messages": [user("a"), assistant("b")],
        "add_generation_prompt": False,
    },
    "tools": {"messages": [user("Weather?")], "tools": [TOOL]},
    "tools and system": {"messages": [SYSTEM, user("Weather?")], "tools": [TOOL, TOOL]},
    "no tools": {"messages": [SYSTEM, user("Weather?")], "tools": []},
    "tool call": {
        "messages": [user("Weather?"), assistant("", tool_calls=[CALL])],
        "tools": [TOOL],
    },
    "tool calls and text": {
        "messages": [user("Weather?"), assistant("Let me see.", tool_calls=[CALL, TEXT_CALL])],
        "tools": [TOOL],
    },
    "null content": {
        "messages": [user("Weather?"), assistant(None, tool_calls=[CALL])],
        "tools": [TOOL],
    },
    "null user content": {"messages": [user(None)]},
    "tool results": {
        "messages": [
            user("Weather?"),
            assistant("", tool_calls=[CALL, CALL]),
            {"role": "tool", "content": '{"t": 20}'},
            {"role": "tool", "content": "sunny"},
            assistant("20 °C"),
            user("Thanks"),
        ],
        "tools": [TOOL],
    },
    "tool result with image": {
        "messages": [
            user("Look"),
            assistant("", tool_calls=[TEXT_CALL]),
            {"role": "tool", "content": parts("see ", "image")},
        ]
    },
    "thinking off": {"messages": [user("2+2?")], "kwargs": {"enable_thinking": False}},
    "thinking on": {"messages": [user("2+2?")], "kwargs": {"enable_thinking": True}},
    "thinking history": {
        "messages": [
            user("2+2?"),
            assistant("<think>\nadd\n</think>\n\n4"),
            user("3+3?"),
            assistant("<think>\nadd again\n</think>\n\n6"),
        ],
        "add_generation_prompt": False,
    },
    "reasoning content": {
        "messages": [user("2+2?"), assistant("4", reasoning_content="\nadd\n"), user("3+3?")]
    },
    "reasoning": {"messages": [user("2+2?"), assistant("4", reasoning="add")]},
    "reasoning before a tool": {
        "messages": [
            user("2+2?"),
            assistant("", reasoning_content="call", tool_calls=[CALL]),
            {"role": "tool", "content": "4"},
        ],
        "tools": [TOOL],
    },
    "white space": {"messages": [user("\n\n  a \r\n b \n\n")]},
    "empty": {"messages": [user("")]},
    "unicode": {"messages": [user(TEXTS[10] + TEXTS[13] + TEXTS[5])]},
    "empty conversation": {"messages": []},
    "unknown role": {"messages": [{"role": "critic", "content": "hm"}]},
    "no role": {"messages": [{"content": "hm"}]},
    "markup": {"messages": [user("{{ messages }} {% if x %} {# c #}")]},
}

# Jinja as templates in the wild use it, on the variables of CONVERSATIONS["tool results"].
# Known to differ, and so not here: none is iterated as an empty list, and "…" % x is refused.
SNIPPETS = [
    "{{ messages[0].content }}{{ messages[-1]['role'] }}{{ messages|length }}",
    (
        "{{ none }}{{ true }}{{ false }}{{ 1.0 }}{{ 1e22 }}{{ 1.5e-7 }}{{ 7 // 2 }}{{ 7 / 2 }}{{ -7"
        " % 3 }}"
    ),
    "{{ [1, 'a', none, true, 1.5] }}{{ {'b': 1, 'a': {'x': \"y'\"}} }}{{ (1, 2) }}{{ [] }}{{ {} }}",
    "{{ 'it\\'s' }}{{ ['it\\'s', 'a\"b', 'é\\n\\t\\\\'] }}",
    "{{ tools|tojson }}",
    "{{ tools|tojson(indent=2) }}",
    "{{ tools[0]|tojson(indent=4, ensure_ascii=True) }}",
    "{{ tools[0]|tojson(separators=(',', ':'), sort_keys=True) }}",
    "{{ [1e16, 0.1, 1.0, -0.0, 1e-5, 123456789012345678, none, true]|tojson }}",
    "{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}",
    "{{ '\\x00\\x1f\\x7f\u2028😀\\\\/<>&\\''|tojson }}{{ '\\x7f😀é'|tojson(ensure_ascii=True) }}",
    "{{ [[], {}, [[]], {'a': []}]|tojson(indent=1) }}{{ []|tojson(indent=0) }}",
    "{{ undefined_thing|tojson }}",
    "{{ undefined_thing }}|{{ undefined_thing is defined }}|{{ undefined_thing == none }}",
    "{{ undefined_thing.attribute }}",
    "{{ undefined_thing + 'a' }}",
    "{{ undefined_thing ~ 'a' }}",
    "{% for x in undefined_thing %}x{% endfor %}|{{ undefined_thing|length }}",
    "{{ none.attribute }}|{{ none is none }}|{{ 1 is none }}",
    "{{ messages[99] }}|{{ messages[0].nothing }}|{{ messages[0]['nothing'] is undefined }}",
    (
        "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}"
        "{{ loop.revindex }}{{ loop.length }}{% if loop.index == 2 %}{% continue %}{% endif %}"
        "{% if loop.index > 3 %}{% break %}{% endif %}{{ m.role }};{% endfor %}"
    ),
    "{% for m in messages if m.role == 'tool' %}{{ m.content }}{% else %}none{% endfor %}",
    (
        "{% for m in messages %}{{ loop.previtem.role if loop.previtem }}>{{ loop.nextitem.role if "
        "loop.nextitem is defined }} {{ loop.cycle('a', 'b') }} {% endfor %}"
    ),
    "{% for k, v in tools[0].function.items() %}{{ k }}={{ v if v is string }};{% endfor %}",
    "{% for k, v in tools[0].function|items %}{{ k }};{% endfor %}{{ tools[0]|dictsort|length }}",
    "{{ tools[0].function.keys()|list }}{{ tools[0].get('zzz', 7) }}{{ tools[0].get('type') }}",
    "{{ 'role' in messages[0] }}{{ 'zzz' in messages[0] }}{{ 'ell' in 'hello' }}{{ 2 not in [1] }}",
    (
        "{% set ns = namespace(n=0, text='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
        "{% set ns.text = ns.text ~ m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.text }}"
    ),
    (
        "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{% for i in [3] %}{% set x = i %}"
        "{% endfor %}{{ x }}"
    ),
    "{% set block %}a{{ 1 }}b{% endset %}[{{ block }}]",
    "{% macro m(a, b='x', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}",
    "{% macro deep(n) %}{% if n > 0 %}({{ deep(n - 1) }}){% endif %}{% endmacro %}{{ deep(40) }}",
    "{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}in{% endcall %}",
    (
        "{{ ' a b '.strip() }}|{{ '\\n\\nx'.lstrip('\\n') }}|{{ 'xx--'.rstrip('-') }}|{{"
        " 'aXbX'.split('X') }}"
    ),
    (
        "{{ 'a</think>b</think>c'.split('</think>')[-1] }}{{ 'a,b,c'.split(',', 1) }}{{ ' a  b"
        " '.split() }}"
    ),
    (
        "{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.upper() }}{{"
        " 'ABC'.lower() }}"
    ),
    (
        "{{ 'a-b'.replace('-', '+') }}{{ 'hello world'.title() }}{{ 'hello'.capitalize() }}{{"
        " 'aXbX'.count('X') }}"
    ),
    "{{ 'abc'.find('c') }}{{ 'a\\nb'.splitlines() }}{{ '12'.isdigit() }}{{ 'x'.join(['1', '2']) }}",
    (
        "{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.py'.removesuffix('.py') }}{{ 'a b"
        " c'.partition(' ') }}{{ 'ab'.rpartition(' ') }}"
    ),
    (
        "{{ 'abcdef'[1:3] }}{{ 'abc'[::-1] }}{{ [1, 2, 3][::-1] }}{{ [1, 2, 3][-1:] }}{{"
        " messages[1:]|length }}"
    ),
    "{{ 'a' if false }}|{{ 'a' if true else 'b' }}|{{ none or 'x' }}|{{ '' or 0 }}|{{ 1 and 2 }}",
    "{{ 'a' 'b' }}{{ 'a' ~ 1 ~ none ~ true }}{{ 'ab' * 3 }}{{ [1] + [2] }}{{ 1 + 1 }}",
    "{{ 'a' + 1 }}",
    (
        "{{ 1 is number }}{{ 'a' is string }}{{ [] is sequence }}{{ 'a' is sequence }}{{ {} is"
        " mapping }}{{ {} is sequence }}{{ 'a' is iterable }}{{ [] is iterable }}{{ {} is iterable"
        " }}{{ 1 is iterable }}{{ true is boolean }}{{ 1 is integer }}{{ 1.0 is float }}{{ true is"
        " integer }}{{ none is sequence }}"
    ),
    (
        "{{ true is true }}{{ 1 is true }}{{ false is false }}{{ 3 is odd }}{{ 4 is divisibleby 2"
        " }}{{ 'a' is in ['a'] }}{{ 1 is eq 1 }}{{ 'A' is upper }}{{ x is not defined }}{{"
        " raise_exception is callable }}"
    ),
    "{{ 'b'|default('x') }}{{ y|default('x') }}{{ ''|default('x', true) }}{{ none|default('x') }}",
    (
        "{{ '  x '|trim }}|{{ 'ABC'|lower }}|{{ 'abc'|upper }}|{{ 'abc'|capitalize }}|{{ 'a"
        " b'|title }}"
    ),
    (
        "{{ [3, 1, 2]|sort }}{{ [1, 2]|first }}{{ [1, 2]|last }}{{ [1, 2]|sum }}{{ [1, 1,"
        " 2]|unique|list }}"
    ),
    (
        "{{ ['a', 'b']|join(', ') }}{{ [1, 2]|join }}{{ 'abc'|list }}{{ [1, 2, 3]|reverse|list }}{{"
        " 'abc'|reverse }}"
    ),
    "{{ messages|map(attribute='role')|join(',') }}{{ ['a']|map('upper')|list }}",
    (
        "{{ messages|selectattr('role', 'equalto', 'tool')|list|length }}{{"
        " messages|rejectattr('role', 'eq', 'tool')|list|length }}"
    ),
    (
        "{{ [0, 1, 2]|select('odd')|list }}{{ [0, 1]|reject('odd')|list }}{{ '3'|int + 1 }}{{"
        " '1.5'|float }}{{ 1|string }}"
    ),
    "{{ 3.7|round }}{{ 3.14159|round(2) }}{{ -3|abs }}{{ [1, 5, 3]|max }}{{ [4, 2]|min }}",
    (
        "{{ 'a\\nb'|indent(2) }}{{ 'a\\nb'|indent(2, true) }}{{ '%s-%02d'|format('a', 3) }}{{"
        " '{}-{}'.format(1, 'b') }}"
    ),
    (
        "{{ 'a<b>'|e }}{{ 'a<b>'|safe }}{{ 'a-b'|replace('-', '_') }}{{ 'hello'|length }}{{ [1, 2,"
        " 3]|batch(2)|list }}"
    ),
    "{{ range(3)|list }}{{ range(1, 4)|list }}{{ range(5, 0, -2)|list }}{{ dict(a=1, b='x') }}",
    "{{ messages|groupby('role')|length }}{{ ('a', 1) }}{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    (
        "{% set a = {'k': [1, 2]} %}{{ a.k[1] }}{{ a['k'][0] }}{{ a.values()|list }}{{ a == {'k':"
        " [1, 2]} }}"
    ),
    "{% with x = 5 %}{{ x }}{% endwith %}{{ x }}",
    (
        "{% raw %}{{ not }}{% endraw %}{# comment #}{{- ' trimmed ' -}}   x   {%- if true -%}  y "
        " {%- endif %}"
    ),
    "  {% if true %}\n  line\n  {% endif %}\nend\n\n",
    "{% if true %}\r\nwindows\r\n{% endif %}\r\n",
    "a\n{# comment #}\nb\n{{ 'x' }}\nc\n",
    "{% filter upper %}abc{{ 'd' }}{% endfilter %}",
    "{{ messages is iterable and messages is not mapping }}{{ messages[0].content is string }}",
    "{{ strftime_now('%Y')|length }}{{ strftime_now('%%') }}",
    "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ documents }}|{{ tools is none }}",
    "{{ raise_exception('refused: ' ~ messages|length) }}",
    "{{ 1 / 0 }}",
    "{{ 'abc'.nothing() }}",
    "{{ nothing() }}",
    "{{ messages[0].update({'a': 1}) }}",
    "{{ messages.append(1) }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__class__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ 10 ** 3 }}{{ 2 ** -1 }}{{ 5 > 3 > 1 }}{{ not true }}{{ 1 == 1.0 }}{{ 'a' < 'b' }}",
    "{{ '\\u00e9\\x41' }}{{ \"double\" }}",
    "{%- for item in [['a', 1], ['b', 2]] %}{% set k, v = item %}{{ k }}{{ v }}{% endfor %}",
    "{% for a, b in [[1, 2], [3, 4]] recursive %}{{ a }}{{ b }}{% endfor %}",
    (
        "{% if messages[0]['content'] is not string and messages[0]['content'] is iterable %}y{%"
        " else %}n{% endif %}"
    ),
]
