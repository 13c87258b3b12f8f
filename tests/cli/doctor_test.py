"""doctor: facts about the machine, and checks that fail where something is broken."""
import unittest

from support import BUNDLED, BUNDLED_LINE, CliTest, Safetensors, copy_model, parse_json, run

FACTS = ["device", "threads", "memory", "cache", "token", "build", "checks"]
OPS_CHECKS = ["matrix product", "attention", "picture"]
MODEL_CHECKS = ["model", "tokenizer", "template"]
SECRET = "hf_secretsecretsecret"


class DoctorCase(CliTest):
    def doctor(self, *arguments, code: int = 0, **settings) -> dict:
        result = run("doctor", "--json", *arguments, **settings)
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out.count("\n"), 1)
        self.assertNotIn(SECRET, result.out + result.err)
        return parse_json(result.out)

    def names(self, report: dict, ok: bool = True) -> list[str]:
        return [check["name"] for check in report["checks"] if check["ok"] == ok]


class Doctor(DoctorCase):
    def test_all_is_well(self):
        report = self.doctor()
        self.assertEqual(list(report), FACTS)
        self.assertEqual(self.names(report), [*OPS_CHECKS, *MODEL_CHECKS, "answer"])
        self.assertEqual(report["build"], parse_json(run("version", "--json").out))
        self.assertGreaterEqual(report["threads"], 1)
        self.assertGreater(report["memory"]["total"], report["memory"]["available"])
        [answer] = [check for check in report["checks"] if check["name"] == "answer"]
        self.assertIn("Blue", answer["detail"])

    def test_text_says_the_same(self):
        result = run("doctor")
        self.assertEqual((result.code, result.err), (0, BUNDLED_LINE))
        for name in [*OPS_CHECKS, *MODEL_CHECKS, "answer"]:
            self.assertRegex(result.out, rf"(?m)^ok +{name} ")
        self.assertNotIn("failed", result.out)

    def test_a_model_of_ones_own(self):
        self.assertEqual(
            self.names(self.doctor("-m", BUNDLED)), [*OPS_CHECKS, *MODEL_CHECKS]
        )

    def test_without_models(self):
        report = self.doctor(env={"WHIMBREL_MODELS": str(self.folder)})
        self.assertEqual(self.names(report), OPS_CHECKS)

    def test_a_missing_model(self):
        report = self.doctor("-m", "no-such-model", code=1)
        self.assertEqual(self.names(report, ok=False), ["model"])
        self.assertEqual(self.names(report), OPS_CHECKS)

    def test_a_broken_template(self):
        model = copy_model(BUNDLED, self.folder / "model")
        (model / "chat_template.jinja").write_text("{% for x in %}")
        report = self.doctor("-m", model, code=1)
        self.assertEqual(self.names(report, ok=False), ["template"])
        result = run("doctor", "-m", model)
        self.assertEqual(result.code, 1)
        self.assertRegex(result.out, r"(?m)^failed +template ")
        self.assertRegex(result.err, r"\Aerror: \[doctor\] got 1 of 6 checks failed[^\n]+\n\Z")

    def test_a_wrong_answer(self):
        """The bundled model with one layer's output rows in another order."""
        models = self.folder / "models"
        model = copy_model(BUNDLED, models / BUNDLED)
        weights = Safetensors.read(model / "model.safetensors")
        [name] = [name for name in weights.tensors if "layers.0.self_attn.o_proj.weight" in name]
        dtype, shape, data = weights.tensors[name]
        half = len(data) // 2
        weights.tensors[name] = (dtype, shape, data[half:] + data[:half])
        weights.write(model / "model.safetensors")
        (model / "model.safetensors.index.json").unlink()
        report = self.doctor(code=1, env={"WHIMBREL_MODELS": str(models)})
        self.assertEqual(self.names(report, ok=False), ["answer"])


class Hub(DoctorCase):
    def facts(self, **variables) -> tuple[dict, dict]:
        cleared = dict.fromkeys(
            ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH", "XDG_CACHE_HOME"), ""
        )
        env = {**cleared, "HOME": str(self.folder), **variables}
        report = self.doctor(env={**env, "WHIMBREL_MODELS": str(self.folder)})
        return report["cache"], report["token"]

    def test_cache_folder(self):
        for variables, folder in (
            ({}, f"{self.folder}/.cache/huggingface/hub"),
            ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
            ({"XDG_CACHE_HOME": "/x", "HF_HOME": "/h"}, "/h/hub"),
            ({"HF_HOME": "/h", "HF_HUB_CACHE": "/c"}, "/c"),
        ):
            self.assertEqual(self.facts(**variables)[0], {"folder": folder, "exists": False})
        here = str(self.folder)
        self.assertEqual(self.facts(HF_HUB_CACHE=here)[0], {"folder": here, "exists": True})

    def test_without_a_home_folder(self):
        cache, token = self.facts(HOME="")
        self.assertEqual(cache, {"folder": None, "exists": False})
        self.assertEqual(token, {"found": False})
        here = str(self.folder)
        self.assertEqual(self.facts(HOME="", HF_HUB_CACHE=here)[0]["folder"], here)
        self.assertEqual(self.facts(HOME="", HF_TOKEN=SECRET)[1], {"found": True})
        text = run("doctor", env={"HOME": "", "HF_HOME": "", "HF_HUB_CACHE": "", "XDG_CACHE_HOME": ""})
        self.assertEqual(text.code, 0, text)
        self.assertRegex(text.out, r"(?m)^cache +none: there is no home folder; set HF_HOME ")

    def test_token_is_found_and_never_shown(self):
        none, found = {"found": False}, {"found": True}
        self.assertEqual(self.facts()[1], none)
        self.assertEqual(self.facts(HF_TOKEN=SECRET)[1], found)
        file = self.write("home/token", SECRET)
        self.assertEqual(self.facts(HF_HOME=str(file.parent))[1], found)
        self.assertEqual(self.facts(HF_TOKEN_PATH=str(file))[1], found)
        self.assertEqual(self.facts(HF_TOKEN_PATH=str(self.write("empty", "")))[1], none)
        text = run("doctor", env={"HF_TOKEN": SECRET})
        self.assertRegex(text.out, r"(?m)^token +found$")
        self.assertNotIn(SECRET, text.out + text.err)


if __name__ == "__main__":
    unittest.main()
