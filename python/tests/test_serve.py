"""The protocol, with programs as real processes."""

import signal
import subprocess
import tempfile
import unittest

from .conversation import PATIENCE, SPHERE, Conversation, item, python, write


class Serving(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def talk(self, body, **options):
        """A conversation with the sphere, whose function has this additional line, after its introduction."""
        conversation = self.program(SPHERE.replace("{body}", body), **options)
        self.introduction = conversation.receive()
        return conversation

    def program(self, text, **options):
        conversation = Conversation(python(write(self.directory, text)), **options)
        self.addCleanup(conversation.__exit__)
        return conversation

    def assert_stops(self, conversation, sentence):
        """The program ends with status 1, sends nothing more to the worker, and prints the sentence last."""
        status, rest, errors = conversation.end()
        self.assertEqual((status, rest), (1, b""), errors)
        self.assertIn(sentence, errors.splitlines()[-1])
        return errors

    def test_a_conversation(self):
        conversation = self.talk("pass")
        genome = [{"name": "x", "type": "real", "length": 2, "low": -5, "high": 5}]
        expected = {"evoxo": 1, "name": "sphere", "version": "1", "objectives": ["min cost"], "genome": genome}
        self.assertEqual(self.introduction, expected)
        self.assertEqual(conversation.ask(item(1.0, 2.0), item(0.0, -3)), [{"f": [5.0]}, {"f": [9.0]}])
        self.assertEqual(conversation.ask(batch=2), [])
        self.assertEqual(conversation.end(), (0, b"", ""))

    def test_a_function_that_takes_a_seed_is_noisy(self):
        conversation = self.program(SPHERE.replace("{body}", "pass").replace("sphere(x)", "sphere(x, seed)"))
        self.assertIs(conversation.receive()["noisy"], True)
        self.assertEqual(conversation.ask(item(1.0, 2.0)), [{"f": [5.0]}])

    def test_floats_keep_every_bit(self):
        conversation = self.talk("return x[0]")
        values = [0.1, 130.65331632653061, 5e-324, 1.7976931348623157e308, -0.0, 2**-1022 / 3]
        answers = conversation.ask(*(item(value, 0) for value in values))
        self.assertEqual([repr(answer["f"][0]) for answer in answers], list(map(repr, values)))

    def test_every_type_of_genes_seeds_constraints_and_measures(self):
        conversation = self.program("""
            import evoxo
            genome = {"r": evoxo.reals(1, 0, 0.5), "i": evoxo.integers(1, -3, 3), "b": evoxo.bits(2),
                      "p": evoxo.permutation(3), "s": evoxo.symbols(2, "AB")}
            @evoxo.problem(genome=genome, objectives=["min a", "max b"], constraints=["g1"], measures=["m1", "m2"])
            def mixed(r, i, b, p, s, seed):
                assert [type(v) for v in (r[0], i[0], b[0], p[0], s)] == [float, int, int, int, str]
                return evoxo.Result([r[0] + i[0], seed % 2**32], g=b[1] - 0.5, m=(p.index(2), s.count("B")))
            evoxo.main(mixed)
        """)
        introduction = conversation.receive()
        self.assertEqual((introduction["constraints"], introduction["measures"]), (["g1"], ["m1", "m2"]))
        self.assertEqual(introduction["genome"][4], {"name": "s", "type": "symbols", "length": 2, "alphabet": "AB"})
        genes = {"r": [0.25], "i": [-3], "b": [0, 1], "p": [2, 0, 1], "s": "BB"}
        one = {"id": "a", "seed": "ffffffff00000007", "genes": genes}
        self.assertEqual(conversation.ask(one), [{"f": [-2.75, 7.0], "g": [0.5], "m": [0.0, 2.0]}])

    def test_stray_prints_go_to_standard_error(self):
        conversation = self.program("""
            print("before the import")
            import os, subprocess, sys
            import evoxo
            print("while it is loaded")
            @evoxo.problem(genome=evoxo.bits(1), objectives=["max ones"])
            def noisy(x):
                sys.__stdout__.write("by the old standard output\\n")
                sys.__stdout__.flush()
                os.write(1, b"by the descriptor\\n")
                subprocess.run(["echo", "by a child process"])
                # Child processes get neither the worker's lines nor its variable.
                assert subprocess.run(["cat"], stdout=subprocess.PIPE).stdout == b"" == sys.stdin.read().encode()
                assert "EVOXO_PROTOCOL" not in os.environ
                print("by print")
                return x[0]
            evoxo.main(noisy)
        """)
        self.assertEqual(conversation.receive()["name"], "noisy")
        self.assertEqual(conversation.ask(item(1)), [{"f": [1.0]}])
        # Written at once, so that it is there when the program is killed.
        self.assertIn("by print\n", conversation.errors())
        status, rest, errors = conversation.end()
        self.assertEqual((status, rest), (0, b""))
        expected = ["before the import", "while it is loaded", "by print", "by the old standard output"]
        self.assertEqual(sorted(errors.splitlines()), sorted([*expected, "by the descriptor", "by a child process"]))

    def test_what_is_no_number_fails_one_candidate(self):
        conversation = self.talk("if x[0] < 0: return x[1] * 1e308 * 10 * (0 if x[0] < -1 else 1)")
        answers = conversation.ask(item(-2, 1, candidate="a"), item(-1, 1, candidate="b"), item(-1, -1), item(1, 1))
        expected = [{"fail": "cost is nan"}, {"fail": "cost is inf"}, {"fail": "cost is -inf"}, {"f": [2.0]}]
        self.assertEqual(answers, expected)
        status, _, errors = conversation.end()
        self.assertEqual(status, 0)
        self.assertIn("candidate a: cost is nan", errors)

    def test_a_number_too_large_for_a_float_fails_one_candidate(self):
        self.assertEqual(self.talk("return -10**400").ask(item(0, 0)), [{"fail": "cost is -inf"}])

    def test_failed_fails_one_candidate(self):
        conversation = self.talk(r'if x[0] < 0: raise evoxo.Failed("diverged at \ud800 " + "x" * int(-x[0]))')
        answers = conversation.ask(item(-1, 0), item(-5000, 0), item(1, 0))
        self.assertEqual(answers[0], {"fail": "diverged at ? x"})
        self.assertEqual((len(answers[1]["fail"]), answers[2]), (1000, {"f": [1.0]}))
        self.assertEqual(conversation.end(), (0, b"", ""))

    def test_an_exit_ends_the_program_and_names_its_candidate(self):
        conversation = self.talk("raise SystemExit(3)")
        conversation.send({"batch": 1, "items": [item(0, 0, candidate="main-0-7")]})
        self.assert_stops(conversation, "candidate main-0-7 ended the program: SystemExit: 3")

    def test_an_exception_ends_the_program_with_its_traceback(self):
        conversation = self.talk("1 / x[0]")
        self.assertEqual(conversation.ask(item(1, 1)), [{"f": [2.0]}])
        conversation.send({"batch": 2, "items": [item(0, 0, candidate="main-0-7")]})
        errors = self.assert_stops(conversation, "candidate main-0-7 ended the program: ZeroDivisionError: ")
        self.assertIn("1 / x[0]", errors)

    def test_answers_that_do_not_fit_end_the_program(self):
        for returned, sentence in {
            "None": "sphere returned None among its objectives, which is not a number",
            "[1, 2]": "sphere returned 2 numbers for 1 objective",
            "{1}": "sphere returned {1} for its objectives: return numbers",
            "'12'": "sphere returned '12' for its objectives: return numbers",
            "['1']": "sphere returned '1' among its objectives, which is not a number",
            "1j": "sphere returned 1j among its objectives, which is not a number",
            "evoxo.Result(1, g=[2])": "sphere returned 1 number for 0 constraints",
        }.items():
            with self.subTest(returned=returned):
                conversation = self.talk(f"return {returned}")
                conversation.send({"batch": 1, "items": [item(0, 0)]})
                self.assert_stops(conversation, f"candidate main-0-0: {sentence}")

    def test_requests_that_make_no_sense_end_the_program(self):
        bad = {
            b"rubbish\n": "a line that is not JSON: b'rubbish",
            b"\xff\xfe\n": "a line that is not JSON",
            b'{"batch":1,"items":[': "a line that is not JSON",
            b'{"batch":1,"items":[NaN]}\n': "a line that is not JSON",
            b"[" * 100_000 + b"\n": "a line that is not JSON",
            b'{"batch":"1","items":[]}\n': "not a request with batch and items",
            b'{"batch":true,"items":[]}\n': "not a request with batch and items",
            b'{"items":[]}\n': "not a request with batch and items",
            b"[1]\n": "not a request with batch and items",
            b'{"batch":1,"items":[7]}\n': "an item is not an object with id, seed and genes: 7",
            b'{"batch":1,"items":[{"id":"a","seed":"12","genes":{}}]}\n': "the seed of a is not a string of 16",
        }
        for line, sentence in bad.items():
            with self.subTest(line=line[:40]):
                conversation = self.talk("pass")
                conversation.send(line)
                self.assert_stops(conversation, sentence)

    def test_genes_that_do_not_fit_end_the_program(self):
        for genes, sentence in (
            ({"y": [0, 0]}, "the genes of a have the parts y instead of x"),
            ([], "the genes of a have the parts [] instead of x"),
            ({"x": [0]}, "the part x of a has 1 gene instead of 2"),
            ({"x": "00"}, "the part x of a is not a list but '00'"),
            ({"x": [0, None]}, "the part x of a has a gene that is not a number"),
        ):
            with self.subTest(genes=genes):
                conversation = self.talk("pass")
                conversation.send({"batch": 1, "items": [{"id": "a", "seed": "0" * 16, "genes": genes}]})
                self.assert_stops(conversation, sentence)

    def test_a_line_that_is_too_long_ends_the_program(self):
        conversation = self.talk("pass")
        conversation.send(b" " * 16 * 1024 * 1024 + b"\n")
        self.assert_stops(conversation, "a line of more than 16777216 bytes")

    def test_another_version_of_the_protocol_is_refused(self):
        conversation = self.program(SPHERE.replace("{body}", "pass"), version="2")
        self.assert_stops(conversation, "the worker uses version 2 of the protocol, but this package uses version 1")

    def test_a_termination_signal_ends_the_program_at_once(self):
        conversation = self.talk("import time; time.sleep(600)")
        conversation.send({"batch": 1, "items": [item(0, 0)]})
        conversation.process.terminate()
        self.assertEqual(conversation.process.wait(PATIENCE), -signal.SIGTERM)

    def test_an_interrupt_of_the_terminal_does_not_disturb(self):
        conversation = self.talk("pass")
        conversation.process.send_signal(signal.SIGINT)
        self.assertEqual(conversation.ask(item(1, 1)), [{"f": [2.0]}])
        self.assertEqual(conversation.end(), (0, b"", ""))

    def test_an_endless_function_ends_some_time_after_its_worker(self):
        conversation = self.talk("import evoxo._serve; evoxo._serve.ALONE_S = 0.2\n        while x[0]: pass")
        self.assertEqual(conversation.ask(item(0, 3)), [{"f": [9.0]}])
        conversation.send({"batch": 2, "items": [item(1, 1)]})
        self.assert_stops(conversation, "the worker is gone, and the last answer took more than 0.2 s")

    def test_an_endless_function_ends_although_nobody_reads_its_errors(self):
        body = "import evoxo._serve; evoxo._serve.ALONE_S = 0.2\n        while x[0]: pass"
        conversation = self.talk(body, errors=subprocess.PIPE)
        conversation.ask(item(0, 3))
        conversation.send({"batch": 2, "items": [item(1, 1)]})
        for pipe in (conversation.process.stdin, conversation.process.stdout, conversation.process.stderr):
            pipe.close()
        self.assertEqual(conversation.process.wait(PATIENCE), 1)

    def test_a_worker_that_is_gone(self):
        conversation = self.talk("pass")
        conversation.process.stdout.close()
        conversation.send({"batch": 1, "items": [item(0, 0)]})
        self.assertEqual(conversation.process.wait(PATIENCE), 1)
        self.assertEqual(conversation.errors(), "sphere: the worker is gone\n")

    def test_child_processes_that_import_the_file_do_not_serve(self):
        conversation = self.program("""
            import multiprocessing
            import evoxo
            def square(a): return a * a
            @evoxo.problem(genome=evoxo.integers(2, 0, 9), objectives=["min cost"])
            def parallel(x):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    return sum(pool.map(square, x))
            evoxo.main(parallel)
        """)
        conversation.receive()
        self.assertEqual(conversation.ask(item(3, 4)), [{"f": [25.0]}])
        self.assertEqual(conversation.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
