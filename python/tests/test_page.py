"""docs/own-problem.md is correct: its programs run, and its conversation takes place as shown."""

import json
import math
import re
import sys
import tempfile
import unittest

from .conversation import PACKAGE, PROGRAMS, Conversation, item, python, started, write

PAGE = PACKAGE.parent / "docs" / "own-problem.md"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = PAGE.read_text(encoding="utf-8")

    def block(self, language, word):
        """The only fenced block of a language that contains a word."""
        blocks = [block.partition("\n") for block in re.split("^```", self.text, flags=re.MULTILINE)[1::2]]
        found = [text for name, _, text in blocks if name == language and word in text]
        self.assertEqual(len(found), 1, word)
        return found[0]

    def test_the_first_program_is_the_example(self):
        self.assertEqual(self.block("python", "def rosen"), (PROGRAMS / "rosen.py").read_text())

    def test_the_experiment_file(self):
        block = self.block("", "rosen.py file\n")
        self.assertEqual(started(PROGRAMS / "rosen.py", "file").stdout, block.partition("\n")[2])

    def test_the_conversation(self):
        lines = re.split(r"^(?=[<>] )", self.block("", "main-0-6"), flags=re.MULTILINE)[1:]
        self.assertEqual([line[0] for line in lines], ["<", ">", "<"])
        with tempfile.TemporaryDirectory() as directory:
            with Conversation(python(write(directory, self.block("python", "def evaluate")))) as conversation:
                self.assertEqual(conversation.receive(), json.loads(lines[0][2:]))
                conversation.send(json.loads(lines[1][2:]))
                self.assertEqual(conversation.receive(), json.loads(lines[2][2:]))
                self.assertEqual(conversation.end(), (0, b"", ""))

    def test_what_check_says_of_an_impure_function(self):
        text = """
            import evoxo
            calls = []
            @evoxo.problem(genome=evoxo.bits(1), objectives=["max ones"])
            def counted(x): calls.append(x); return len(calls)
            evoxo.main(counted)
        """
        with tempfile.TemporaryDirectory() as directory:
            said = started(write(directory, text), "check").stdout
        self.assertTrue(said.startswith(self.block("", "candidate 0 ")), said)

    def test_the_function_with_several_parts(self):
        body = "    hours, fuel, late, detours = speed[0], 2, -1, seed\n"
        text = self.block("python", "def trip").replace("    ...\n", body)
        with tempfile.TemporaryDirectory() as directory:
            path = write(directory, f"import evoxo\n{text}evoxo.main(trip)\n")
            with Conversation(python(path)) as conversation:
                conversation.receive()
                one = {**item(seed="0" * 15 + "5"), "genes": {"tour": list(range(52)), "speed": [1.5]}}
                self.assertEqual(conversation.ask(one), [{"f": [1.5, 2.0], "g": [-1.0], "m": [5.0]}])

    def test_sums(self):
        self.assertEqual(sum([0.1] * 10), 1.0 if sys.version_info >= (3, 12) else 0.9999999999999999)
        self.assertEqual(math.fsum([0.1] * 10), 1.0)


if __name__ == "__main__":
    unittest.main()
