"""A person's own algorithm: the protocol, with programs as real processes, and what a class can do wrong."""

import copy
import pickle
import tempfile
import unittest

import evoxo

from .conversation import Conversation, python, started, write

STEPS = """
    import evoxo
    @evoxo.algorithm("steps", version="1")
    class Steps:
        def __init__(self, genome, settings):
            self.genome, self.settings, self.best = genome, settings, None
        def ask(self, rng):
            {ask}
            return [self.genome.draw(rng)] if self.best is None else [self.best[1], self.best[1]]
        def tell(self, candidates, values):
            {tell}
            self.best = min(zip(values, candidates))
        def save(self):
            return {save}
        def restore(self, saved):
            self.best = saved
    {main}
"""

REALS = [{"name": "x", "type": "real", "length": 2, "low": -5, "high": 5}]


def question(genome=None, state=None, told=(), **more):
    """What a worker asks."""
    return {"algorithm": "steps", "settings": {}, "genome": genome or REALS, "objectives": ["cost"], "constraints": [],
            "measures": [], "id": "main-0-0", "seed": "8f3a00c1d2e3f405", "most": 10, "state": state, "told": list(told), **more}


class Algorithms(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def talk(self, ask="pass", tell="pass", save="self.best", main="evoxo.main(Steps)"):
        text = STEPS.format(ask=ask, tell=tell, save=save, main=main)
        conversation = Conversation(python(write(self.directory, text)))
        self.addCleanup(conversation.__exit__)
        self.introduction = conversation.receive()
        return conversation

    def batch(self, conversation, **asked):
        conversation.send({"batch": 3, "ask": question(**asked)})
        answer = conversation.receive()
        self.assertEqual(answer.pop("batch"), 3)
        return answer

    def assert_fails(self, sentence, asked=None, **changes):
        answer = self.batch(self.talk(**changes), **(asked or {}))
        self.assertEqual(list(answer), ["fail"], answer)
        self.assertIn(sentence, answer["fail"])

    def test_a_conversation(self):
        conversation = self.talk()
        self.assertEqual(self.introduction, {"evoxo": 1, "name": "steps", "algorithms": {"steps": "1"}})
        first = self.batch(conversation)
        [genes] = [item["x"] for item in first["items"]]
        self.assertEqual((first["state"], len(genes)), ("null", 2))
        self.assertTrue(all(-5 <= gene <= 5 for gene in genes))
        # The same question has the same answer, whatever came between.
        self.assertEqual(self.batch(conversation, seed="0000000000000001")["state"], "null")
        self.assertEqual(self.batch(conversation), first)
        told = [{"genes": {"x": [1, 2]}, "f": [0.1]*2, "g": [], "m": []}, {"genes": {"x": [0, 0]}, "fail": True}]
        second = self.batch(conversation, state="null", told=told)
        self.assertEqual(second, {"state": "[0.1,[1.0,2.0]]", "items": [{"x": [1.0, 2.0]}] * 2})
        self.assertEqual(conversation.end(), (0, b"", ""))

    def test_genomes_arrive_as_they_were_declared(self):
        genome = [
            {"name": "a", "type": "integer", "length": 1, "low": 1, "high": 9, "step": 2},
            {"name": "b", "type": "real", "length": 1, "low": 0.001, "high": 1.0, "scale": "log"},
            {"name": "c", "type": "choice", "length": 2, "choices": ["adam", 32, None]},
            {"name": "d", "type": "symbols", "length": 2, "alphabet": "AB"},
            {"name": "e", "type": "permutation", "length": 3},
            {"name": "f", "type": "bits", "length": 2},
        ]
        conversation = self.talk(ask="return [{name: part.draw(rng) for name, part in self.genome.items()}]")
        [item] = self.batch(conversation, genome=genome)["items"]
        self.assertEqual(list(item), list("abcdef"))
        self.assertEqual((sorted(item["e"]), len(item["d"]), set(item["c"]) <= {"adam", 32, None}), ([0, 1, 2], 2, True))
        told = [{"genes": item, "f": [1.0], "g": [0.5], "m": []}]
        genes = "repr({name: part for name, part in self.genome.items()})"
        conversation = self.talk(ask=f"return [candidate] if (candidate := self.genes) else {genes}", tell="self.genes = candidates[0]")
        self.assertEqual(self.batch(conversation, genome=genome, state="null", told=told)["items"], [item])

    def test_a_problem_also_serves_algorithms(self):
        problem = """
    @evoxo.problem(genome=evoxo.reals(2, -5, 5), objectives=["min cost"], version="1")
    def sphere(x):
        return x[0] * x[0] + x[1] * x[1]
    evoxo.main(sphere)
"""
        conversation = self.talk(main=problem)
        self.assertEqual((self.introduction["name"], self.introduction["algorithms"]), ("sphere", {"steps": "1"}))
        self.assertEqual(conversation.ask({"id": "a", "seed": "8f3a00c1d2e3f405", "genes": {"x": [1, 2]}}), [{"f": [5.0]}])
        self.assertEqual(self.batch(conversation)["state"], "null")
        text = STEPS.format(ask="pass", tell="pass", save="self.best", main=problem)
        printed = started(write(self.directory, text), "file", "--algorithm", "steps")
        self.assertIn('algorithm = "own"\nown = "steps"\n', printed.stdout)

    def test_mistakes_have_sentences(self):
        told = {"state": "null", "told": [{"genes": {"x": [1, 2]}, "f": [1.0], "g": [], "m": []}]}
        self.assert_fails("ask raised ZeroDivisionError: division by zero", ask="1 / 0")
        self.assert_fails("ask raised SystemExit: 3", ask="raise SystemExit(3)")
        self.assert_fails("tell raised KeyError: 'a'", told, tell="{}['a']")
        self.assert_fails("ask raised TypeError: 'NoneType' object is not iterable", ask="return None")
        self.assert_fails("candidate 1 of its batch: part \"x\" is 3, but must be a list of genes", ask="return [3]")
        self.assert_fails("candidate 2 of its batch: part \"x\": gene 1 is nan", ask="return [[0, 0], [float('nan'), 0]]")
        self.assert_fails("candidate 1 of its batch has the parts y, not x", ask="return [{'y': [0, 0]}]")
        self.assert_fails("save returned something that cannot be JSON", save="{1, 2}")
        self.assert_fails("its saved state has 10000002 bytes, more than 1048576: save less", save="10_000_000 * 'x'")
        self.assert_fails("the program has no algorithm of this name: it has steps", {"algorithm": "other"})

    def test_a_question_that_cannot_be_read_ends_the_program(self):
        for asked in ({"seed": "x"}, {"genome": [{"name": "x", "type": "real"}]}, {"told": [{"f": [1]}]}):
            conversation = self.talk()
            conversation.send({"batch": 1, "ask": question(**asked)})
            status, rest, errors = conversation.end()
            self.assertEqual((status, rest), (1, b""), errors)
            self.assertIn("the worker sent a question that cannot be read", errors)
        conversation = self.talk()
        status, rest, errors = (conversation.send({"batch": 1, "items": []}), *conversation.end())[1:]
        self.assertIn("this program has only algorithms", errors)

    def test_classes_that_are_not_algorithms_are_rejected(self):
        for name, made in (("a b", int), ("c", int), ("d", lambda genome, settings: None)):
            with self.assertRaises(ValueError):
                evoxo.algorithm(name, version="1")(made)
        with self.assertRaises(TypeError):
            evoxo.main(int)

    def test_check_finds_what_is_not_pure(self):
        good = started(write(self.directory, STEPS.format(ask="pass", tell="pass", save="self.best", main="evoxo.main(Steps)")),
                       "check")
        self.assertEqual((good.returncode, good.stdout), (0, "steps is pure as far as 5 batches show\n"), good.stderr)
        ask = "import random; return [self.genome.draw(random)]"
        bad = started(write(self.directory, STEPS.format(ask=ask, tell="pass", save="0", main="evoxo.main(Steps)")), "check")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("steps: it returns another batch when it is asked the same again", bad.stdout)
        # The best is kept in the class, and not by save.
        ask = "Steps.asked = getattr(Steps, 'asked', 0) + 1; return [[Steps.asked / 10] * 5]"
        kept = started(write(self.directory, STEPS.format(ask=ask, tell="pass", save="0", main="evoxo.main(Steps)")), "check")
        self.assertEqual(kept.returncode, 1, kept.stdout)
        self.assertIn("it keeps something that save does not return", kept.stdout)

    def test_values_are_copied(self):
        value = evoxo.Value([0.5, 2], [1, -1], [3])
        for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            self.assertEqual((other, other.f, other.g, other.m, other.violation), (0.5, (0.5, 2.0), (1.0, -1.0), (3.0,), 1.0))
        self.assertTrue(copy.copy(evoxo.Value()).failed)
