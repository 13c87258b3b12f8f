"""How an answer is drawn and where it ends."""
import unittest

from support import BUNDLED, SHAPES, CliTest, copy_model, edit_json

PICTURE = ("--image", SHAPES, "-p", "Describe this image.")
# An answer that the bundled model doesn't end by itself.
TEXT = ("-p", "Hi")


class Length(CliTest):
    def test_max_tokens(self):
        whole = self.answer(*PICTURE)
        for flag in ("--max-tokens", "-n"):
            answer = self.answer(*PICTURE, flag, 3)
            self.assertEqual(answer["finish_reason"], "length")
            self.assertEqual(answer["ids"], whole["ids"][:3])
            self.assertTrue(whole["text"].startswith(answer["text"]))

    def test_room_for_the_end_token(self):
        whole = self.answer(*PICTURE)
        count = whole["generated_tokens"]
        self.assertEqual(self.answer(*PICTURE, "-n", count)["finish_reason"], "length")
        self.assertEqual(self.answer(*PICTURE, "-n", count + 1)["finish_reason"], "stop")

    def test_context_ends_it(self):
        tokens = self.answer(*TEXT, "-n", 1)["prompt_tokens"]
        answer = self.answer(*TEXT, "--ctx", tokens + 5)
        self.assertEqual((answer["generated_tokens"], answer["finish_reason"]), (5, "length"))


class Stop(CliTest):
    def setUp(self):
        super().setUp()
        self.whole = self.answer(*PICTURE)["text"]

    def assert_stopped(self, answer: dict, stop: str):
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertEqual(answer["text"], self.whole[: self.whole.index(stop)])
        self.assertNotEqual(answer["text"], self.whole)

    def test_inside_and_across_tokens(self):
        # A word, half words over a space, one letter, the very start.
        for stop in ("cross", "ange cro", "g", "A large orange cross at", "background."):
            with self.subTest(stop):
                self.assertIn(stop, self.whole)
                self.assert_stopped(self.answer(*PICTURE, "--stop", stop), stop)

    def test_the_first_of_several(self):
        answer = self.answer(*PICTURE, "--stop", "ring", "--stop", "cross", "--stop", "nowhere")
        self.assert_stopped(answer, "cross")

    def test_nothing_is_lost_when_it_does_not_come(self):
        for stop in ("cross in", "background.!", "nowhere"):
            self.assertEqual(self.answer(*PICTURE, "--stop", stop)["text"], self.whole, stop)

    def test_streamed(self):
        self.assertEqual(self.text(*PICTURE, "--stop", "ange cro"), "A large or")

    def test_the_prompt_does_not_count(self):
        answer = self.answer(*PICTURE, "--stop", "Describe")
        self.assertEqual(answer["text"], self.whole)


class Seed(CliTest):
    WARM = (*TEXT, "--temperature", 1, "-n", 24)

    def test_repeats(self):
        first = self.answer(*self.WARM, "--seed", 7)
        self.assertEqual(self.answer(*self.WARM, "--seed", 7)["ids"], first["ids"])

    def test_others_differ(self):
        hot = (*TEXT, "--temperature", 3, "-n", 24)
        answers = {tuple(self.answer(*hot, "--seed", seed)["ids"]) for seed in (0, 1, 2**64 - 1)}
        self.assertEqual(len(answers), 3)
        unseeded = {tuple(self.answer(*hot)["ids"]) for _ in range(2)}
        self.assertEqual(len(unseeded), 2)

    def test_greedy_needs_none(self):
        greedy = self.answer(*TEXT, "-n", 12)["ids"]
        self.assertEqual(self.answer(*TEXT, "-n", 12, "--seed", 5)["ids"], greedy)
        for narrow in (("--top-k", 1), ("--top-p", 1e-9), ("--min-p", 1)):
            drawn = self.answer(*TEXT, "-n", 12, "--temperature", 5, *narrow)["ids"]
            self.assertEqual(drawn, greedy, narrow)


class Penalties(CliTest):
    def test_each_changes_a_repetitive_answer(self):
        plain = self.answer(*TEXT, "-n", 40)["ids"]
        self.assertLess(len(set(plain)), 25, "the answer repeats too little for this test")
        for penalty in (
            ("--repetition-penalty", 1.8),
            ("--presence-penalty", 2),
            ("--frequency-penalty", 2),
        ):
            with self.subTest(penalty):
                penalised = self.answer(*TEXT, "-n", 40, *penalty)["ids"]
                self.assertGreater(len(set(penalised)), len(set(plain)))


class Defaults(CliTest):
    """generation_config.json, and flags that override one value of it each."""

    def setUp(self):
        super().setUp()
        self.model = copy_model(BUNDLED, self.folder / "model")
        self.greedy = self.answer(*TEXT, "-n", 16)["ids"]

    def set_defaults(self, **values):
        edit_json(self.model / "generation_config.json", lambda config: config.update(values))

    def ids(self, *flags) -> list[int]:
        return self.answer(*TEXT, "-n", 16, "--seed", 1, *flags, model=self.model)["ids"]

    def test_do_sample(self):
        self.set_defaults(do_sample=True, temperature=4.0, top_k=0)
        self.assertNotEqual(self.ids(), self.greedy)
        self.assertEqual(self.ids("--temperature", 0), self.greedy)
        self.assertEqual(self.ids("--top-k", 1), self.greedy)

    def test_not_do_sample(self):
        self.set_defaults(do_sample=False, temperature=4.0)
        self.assertEqual(self.ids(), self.greedy)
        self.assertNotEqual(self.ids("--temperature", 4), self.greedy)

    def test_a_flag_overrides_only_its_own_value(self):
        self.set_defaults(do_sample=True, temperature=4.0, top_k=1)
        self.assertEqual(self.ids("--temperature", 100), self.greedy)
        self.assertNotEqual(self.ids("--top-k", 0), self.greedy)

    def test_repetition_penalty(self):
        self.set_defaults(repetition_penalty=1.8)
        penalised = self.answer(*TEXT, "-n", 16, "--repetition-penalty", 1.8)["ids"]
        self.assertNotEqual(penalised, self.greedy)
        self.assertEqual(self.ids(), penalised)
        self.assertEqual(self.ids("--repetition-penalty", 1), self.greedy)

    def test_end_tokens(self):
        """An id of generation_config.json ends the answer."""
        self.set_defaults(eos_token_id=[2002, self.greedy[3]])
        answer = self.answer(*TEXT, "-n", 16, model=self.model)
        self.assertEqual((answer["ids"], answer["finish_reason"]), (self.greedy[:3], "stop"))


if __name__ == "__main__":
    unittest.main()
