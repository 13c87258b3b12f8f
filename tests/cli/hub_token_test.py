"""A token is for the hub it belongs to: redirects never carry it elsewhere."""
import shutil
import subprocess
import unittest

from hub import REPO, TOKEN, WEIGHTS, HubCase, tls_context

BEARER = f"Bearer {TOKEN}"


def redirecting(to: str):
    return lambda handler, _: handler.reply(302, {"Location": to})


class Token(HubCase):
    def setUp(self):
        super().setUp()
        self.hub.gate = TOKEN
        self.other = self.start_hub(self.FILES)

    def assert_sent_to_the_hub_only(self):
        self.assertEqual({seen.token for seen in self.hub.seen}, {BEARER})
        self.assertLessEqual({seen.token for seen in self.other.seen}, {None})

    def test_where_it_comes_from(self):
        self.write("elsewhere/token", f"{TOKEN}\n")
        for env in (
            {"HF_TOKEN": f" {TOKEN}\n"},
            {"HUGGING_FACE_HUB_TOKEN": TOKEN},
            {"HF_TOKEN_PATH": str(self.folder / "elsewhere/token")},
        ):
            with self.subTest(env):
                shutil.rmtree(self.cache, ignore_errors=True)
                self.assert_pulled(self.pull(**env))
        shutil.rmtree(self.cache)
        self.write("hf/token", TOKEN)
        self.assert_pulled(self.pull())

    def test_not_when_not_wanted(self):
        self.write("hf/token", TOKEN)
        result = self.pull(HF_TOKEN=TOKEN, HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
        self.assert_failed(result, 7, REPO, "HF_TOKEN")
        self.assertEqual({seen.token for seen in self.hub.seen}, {None})

    def test_storage_on_another_port(self):
        self.hub.storage = self.other.url
        self.assert_pulled(self.pull(HF_TOKEN=TOKEN))
        self.assertEqual([seen.method for seen in self.other.seen], ["GET"])
        self.assert_sent_to_the_hub_only()

    def test_storage_under_another_name(self):
        self.hub.storage = self.hub.url.replace("127.0.0.1", "localhost")
        self.hub.fault("GET", "config.json", lambda h, content: h.send_file(content))
        self.hub.gate = None
        self.assert_pulled(self.pull(HF_TOKEN=TOKEN))
        tokens = {seen.host.partition(":")[0]: seen.token for seen in self.hub.seen}
        self.assertEqual(tokens, {"127.0.0.1": BEARER, "localhost": None})

    def test_resumed_from_storage(self):
        self.hub.storage = self.other.url
        self.other.fault("GET", WEIGHTS, lambda h, content: h.drop_after(content, len(content) // 2))
        self.assert_pulled(self.pull(HF_TOKEN=TOKEN))
        self.assertEqual(len(self.other.requests("GET", WEIGHTS)), 2)
        self.assert_sent_to_the_hub_only()

    def test_away_and_back(self):
        """Another host's redirect back to the hub isn't the hub's word either."""
        back = f"{self.hub.url}/storage/{WEIGHTS}"
        self.hub.storage = self.other.url
        self.other.fault("GET", WEIGHTS, redirecting(back))
        result = self.pull(HF_TOKEN=TOKEN)
        self.assertEqual(result.code, 7, result)
        self.assertEqual(self.hub.requests("GET", "/storage/")[0].token, None)

    def test_renamed_model(self):
        """A redirect inside the hub keeps it."""
        now = f"/api/models/{REPO}/revision/main"
        self.hub.fault("GET", "api", redirecting(now), redirecting(self.hub.url + now))
        self.assert_pulled(self.pull(HF_TOKEN=TOKEN))
        self.assert_sent_to_the_hub_only()

    def test_a_listing_elsewhere(self):
        self.hub.fault("GET", "api", redirecting(f"{self.other.url}/api/models/{REPO}/revision/main"))
        self.assert_failed(self.pull(HF_TOKEN=TOKEN), 7, "another host")
        self.assertEqual(self.other.seen, [])

    def test_loop(self):
        itself = f"/{REPO}/resolve/{self.hub.commit}/{WEIGHTS}"
        for target in (itself, self.other.url + "/loop"):
            with self.subTest(target):
                self.hub.fault("GET", WEIGHTS, *[redirecting(target)] * 30)
                self.other.fault("GET", "/loop", *[redirecting("/loop")] * 30)
                self.assert_failed(self.pull(HF_TOKEN=TOKEN), 7, "redirects")
        self.hub.fault("HEAD", WEIGHTS, *[redirecting(itself)] * 30)
        self.assert_failed(self.pull(HF_TOKEN=TOKEN), 7, "redirects")
        self.assert_sent_to_the_hub_only()

    def test_to_what_is_no_address(self):
        for target in ("", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "gopher://x",
                       "http://user:word@127.0.0.1/", "http://a b/"):  # fmt: skip
            with self.subTest(target):
                self.hub.fault("GET", WEIGHTS, redirecting(target))
                self.assert_failed(self.pull(HF_TOKEN=TOKEN), 7, "redirect")

    def test_it_is_never_shown(self):
        self.hub.storage = f"{self.other.url}/s?Signature=secret#"
        self.other.fault("GET", "/s", *[lambda h, _: h.reply(500)] * 9)
        result = self.pull(HF_TOKEN=TOKEN)
        self.assertEqual(result.code, 7)
        for secret in (TOKEN, "Signature", "secret"):
            self.assertNotIn(secret, result.err)


@unittest.skipUnless(shutil.which("openssl"), "no openssl to make a certificate")
class Tls(HubCase):
    def setUp(self):
        super().setUp()
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
             "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )  # fmt: skip
        self.plain, self.certificate = self.hub, certificate
        self.hub = self.start_hub(self.FILES, context=tls_context(certificate, key))

    def env(self, **extra):
        return super().env(**{"HF_TOKEN": TOKEN, "SSL_CERT_FILE": str(self.certificate), **extra})

    def test_over_tls(self):
        self.assert_pulled(self.pull())
        self.assertEqual({seen.token for seen in self.hub.seen}, {BEARER})

    def test_unknown_certificate(self):
        result = self.pull(SSL_CERT_FILE="")
        self.assert_failed(result, 7, "certificate")
        self.assertEqual(self.hub.seen, [])

    def test_downgrade(self):
        """Neither the token nor a request goes to http."""
        self.hub.storage = self.plain.url
        self.assert_failed(self.pull(), 7, "https to http")
        self.hub.storage = None
        for method, name in (("GET", "api"), ("HEAD", "config.json"), ("GET", WEIGHTS)):
            self.hub.fault(method, name, redirecting(f"{self.plain.url}/x"))
            self.assert_failed(self.pull(), 7, "https to http")
        self.assertEqual(self.plain.seen, [])


if __name__ == "__main__":
    unittest.main()
