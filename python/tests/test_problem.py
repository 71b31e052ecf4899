"""Declarations: which ones are rejected, with which message, and what a valid problem is."""

import json
import functools
import linecache
import math
import random
import unittest
from pathlib import Path

import evoxo
from evoxo._source import version_of


def cost(x):
    return x[0] - 1


class Declarations(unittest.TestCase):
    def declare(self, function=cost, genome=evoxo.reals(1, 0, 1), objectives=("min cost",), **options):
        return evoxo.problem(genome=genome, objectives=objectives, **options)(function)

    def assert_refused(self, sentence, **options):
        with self.assertRaises(ValueError) as raised:
            self.declare(**options)
        self.assertIn(sentence, str(raised.exception))

    def test_a_problem_is_called_like_its_function(self):
        problem = self.declare()
        self.assertEqual((problem([3]), problem(x=[4]), problem.name), (2, 3, "cost"))

    def test_the_version_is_that_of_the_source_file(self):
        self.assertEqual(self.declare().version, version_of(Path(__file__).read_bytes()))
        self.assertEqual(self.declare(version="2").version, "2")
        scope = {}
        exec("def typed(x): return x", scope)
        self.assert_refused("has no source file from which to make a version", function=scope["typed"])
        self.assertEqual(self.declare(function=scope["typed"], version="3").version, "3")

    def test_what_only_people_read_is_no_other_version(self):
        source = b'import math\n\ndef f(x):\n    """Says."""\n    return f"{x:>{3}}" + "s"  # why\n'
        same = b'# A file.\n"""Its text."""\nimport math\ndef f(x):\n  # Why.\n\n  return f"{x:>{3}}" + "s"\n'
        # The same version with any version of Python, because hosts of a cluster may have different ones.
        versions = {version_of(text) for text in (source, same, source.replace(b"\n", b"\r\n"))}
        self.assertEqual(versions, {"d4743ea25f35"})
        for old, new in ((b"{3}", b"{4}"), (b'"s"', b'"t"'), (b"(x)", b"(y)"), (b"return", b"yield")):
            self.assertNotIn(version_of(source.replace(old, new)), versions)
        # A file that is not Python is hashed as it is.
        self.assertNotEqual(version_of(b"\x00 1"), version_of(b"\x00 2"))

    def test_a_typed_function_becomes_a_file(self):
        cell = "SCALE = (2, 0.5)\ndef bent(a):\n    return a * m.pi * SCALE[0]\ndef hill(x):\n    return bent(x[0])\n"
        linecache.cache["<cell>"] = (len(cell), None, cell.splitlines(True), "<cell>")
        self.addCleanup(linecache.cache.pop, "<cell>")
        scope = {"m": math, "__name__": "__main__"}
        exec(compile(cell, "<cell>", "exec"), scope)
        problem = self.declare(function=scope["hill"])
        begin = "import evoxo\n\nSCALE = (2, 0.5)\n\nimport math as m\n\ndef bent(a):\n    return a * m.pi * SCALE[0]\n\ndef hill(x):"
        self.assertEqual(problem.typed[: len(begin)], begin)
        end = "\n\nhill = evoxo.problem(genome=evoxo.Reals(length=1, low=0, high=1), objectives=['min cost'])(hill)\n\nevoxo.main(hill)\n"
        self.assertEqual(problem.typed[-len(end) :], end)
        self.assertEqual(self.declare(function=scope["hill"]).version, problem.version)
        scope["SCALE"] = (3, 0.5)
        self.assertNotEqual(self.declare(function=scope["hill"]).version, problem.version)
        scope["SCALE"] = object()
        self.assert_refused("uses SCALE, object, which cannot be written to a file: write", function=scope["hill"])

    def test_the_version_of_a_wrapped_function_is_that_of_its_source_file(self):
        problem = self.declare(function=functools.lru_cache(cost))
        self.assertEqual((problem.version, problem.name), (self.declare().version, "cost"))

        class Made:
            __name__ = "made"

            def __call__(self, x):
                return 1

        self.assert_refused("has no source file from which to make a version", function=Made())

    def test_bounds_are_decimals_of_floats(self):
        for low, high, written in (
            (-5, 5.0, (-5, 5)), (0.000001, 0.5, (0.000001, 0.5)), (-1e9, 1e12, (-1000000000, 10**12)),
            (1e-18, 1 / 3, (1e-18, 1 / 3)), (0.1 + 0.2, 333333333333.33331, (0.1 + 0.2, 333333333333.3333)),
        ):
            declared = evoxo.reals(1, low, high).declaration()
            self.assertEqual(repr((declared["low"], declared["high"])), repr(written))
        for low, high, sentence in (
            (1e-19, 1, "low is 1e-19, but a bound can have at most 18 digits after the point"),
            (0, 1e-5 / 3, "high is 3.3333333333333337e-06, but a bound can have at most 18 digits"),
            (float("-inf"), 1, "low is -inf, but it must be a finite number"),
            (0, float("nan"), "high is nan, but it must be a finite number"),
            (True, 2, "low is True, but must be a number"),
            (2, 1, "low is 2 and high is 1, but low must not be greater than high"),
            (-2e12, 1, "low is -2000000000000, but a bound must be from -1,000,000,000,000 to 1,000,000,000,000"),
        ):
            with self.subTest(low=low, high=high), self.assertRaises(ValueError) as raised:
                evoxo.reals(3, low, high)
            self.assertIn(sentence, str(raised.exception))

    def test_whole_numbers_of_other_types(self):
        class Numpy:
            def __init__(self, value): self.value = value
            def __index__(self): return self.value

        parts = evoxo.integers(Numpy(2), Numpy(-1), Numpy(5)), evoxo.reals(Numpy(2), -1, 5)
        for part, kind in zip(parts, ("integer", "real")):
            self.assertEqual(json.dumps(part.declaration()), f'{{"type": "{kind}", "length": 2, "low": -1, "high": 5}}')
        self.assertEqual(evoxo.permutation(Numpy(3)).middle(), evoxo.permutation(3).middle())

    def test_parts_that_make_no_sense(self):
        for make, sentence in (
            (lambda: evoxo.bits(0), "the length of a part is 0"),
            (lambda: evoxo.permutation(2.0), "the length of a part is 2.0"),
            (lambda: evoxo.integers(1, 0.5, 2), "low is 0.5, but must be a whole number"),
            (lambda: evoxo.integers(1, 3, 2), "low is 3 and high is 2"),
            (lambda: evoxo.integers(1, 0, 10**12 + 1), "high is 1000000000001, but a bound must be from"),
            (lambda: evoxo.symbols(1, "A"), "must have two or more characters, all different"),
            (lambda: evoxo.symbols(1, "ABA"), "must have two or more characters, all different"),
            (lambda: evoxo.symbols(1, "A\n"), "must be a string of printable ASCII characters"),
            (lambda: evoxo.symbols(1, "A\u00e4"), "must be a string of printable ASCII characters"),
            (lambda: evoxo.reals(1, 0, 1, log=True), "low is 0, but with log=True it must be above 0"),
            (lambda: evoxo.reals(1, 1, 2, log=True, step=1), "log is True and step is 1, but a logarithmic scale has no steps"),
            (lambda: evoxo.reals(1, 0, 1, step=-1), "step is -1, but must be 0 or more"),
            (lambda: evoxo.integers(1, 0, 9, step=0.5), "step is 0.5, but must be a whole number"),
            (lambda: evoxo.reals(1, 0, 1e12, step=1e-18), "step is 1e-18, but there can be at most 1,000,000,000,000 steps"),
            (lambda: evoxo.choices(1, ["a"]), "there must be two or more, all different"),
            (lambda: evoxo.choices(1, ["1", 1]), "there must be two or more, all different"),
            (lambda: evoxo.choices(1, ["a,b", "c"]), "the option 'a,b' must have printable ASCII characters without commas"),
            (lambda: evoxo.choices(1, [(1, 2), "c"]), "the option (1, 2) must be a text, a number, True, False or None"),
            (lambda: evoxo.choices(1, ["x" * 600, "y" * 600]), "can have at most 1,000 characters together"),
        ):
            with self.subTest(sentence=sentence), self.assertRaises(ValueError) as raised:
                make()
            self.assertIn(sentence, str(raised.exception))

    def test_conditions_that_make_no_sense(self):
        choice, bit = evoxo.choices(1, ["adam", "sgd"]), evoxo.bits(1)
        for when, others, sentence in (
            ("c", {}, "when is 'c', but must be a dict with one part and its values"),
            ({"c": "adam", "b": 1}, {"c": choice, "b": bit}, "but must be a dict with one part and its values"),
            ({"y": 1}, {"c": choice}, "the part 'x' depends on 'y', but the genome has no such part: it has c, x"),
            ({"c": []}, {"c": choice}, "the part 'x' depends on 0 values of 'c', but 1 to 100 are possible"),
            ({"c": ["adam"] * 101}, {"c": choice}, "the part 'x' depends on 101 values of 'c'"),
            ({"c": "lbfgs"}, {"c": choice}, "the part 'x' depends on 'c' being 'lbfgs', which is not one of its values"),
            ({"b": 2}, {"b": bit}, "the part 'x' depends on 'b' being 2, which is not one of its values"),
            ({"b": True}, {"b": bit}, "the part 'x' depends on 'b' being True, which is not one of its values"),
            ({"b": 1}, {"b": evoxo.bits(2)}, "which must have choices, whole numbers, bits or symbols, and length 1"),
            ({"r": 1}, {"r": evoxo.reals(1, 0, 1)}, "which must have choices, whole numbers, bits or symbols, and length 1"),
            ({"i": 4}, {"i": evoxo.integers(1, 1, 9, step=2)}, "the part 'x' depends on 'i' being 4, which is not one of its values"),
            ({"i": 10}, {"i": evoxo.integers(1, 1, 9)}, "the part 'x' depends on 'i' being 10"),
            ({"s": ","}, {"s": evoxo.symbols(1, "A,")}, "the part 'x' depends on 's' being ','"),
            ({"x": 1}, {}, "the part 'x' depends on itself, by way of 'x'"),
            ({"b": 1}, {"b": evoxo.bits(1, when={"x": 0})}, "depends on itself, by way of"),
        ):
            with self.subTest(when=when), self.assertRaises(ValueError) as raised:
                evoxo._genome.parts_of({**others, "x": evoxo.bits(1, when=when)})
            self.assertIn(sentence, str(raised.exception))

    def test_parts_that_are_not_there(self):
        def tuned(optimizer, momentum, nesterov):
            return 0.0 if momentum is None else momentum[0] + (1 if nesterov is None else nesterov[0])

        genome = {
            "optimizer": evoxo.choices(1, ["adam", "sgd", 1.5]),
            "momentum": evoxo.reals(1, 0, 1, when={"optimizer": ["sgd", 1.5]}),
            "nesterov": evoxo.bits(1, when={"optimizer": "sgd"}),
        }
        problem = self.declare(tuned, genome, version="1")
        declared = [part.get("when") for part in problem.introduction()["genome"]]
        self.assertEqual(declared, [None, "optimizer = sgd, 1.5", "optimizer = sgd"])
        self.assertEqual(eval(f"evoxo.{genome['momentum']!r}"), genome["momentum"])
        self.assertEqual(repr(evoxo.bits(3)), "Bits(length=3)")
        read = lambda genes: problem.read({"id": "1", "seed": "0" * 16, "genes": genes})[1]
        self.assertEqual(read({"optimizer": ["adam"]}), {"optimizer": ["adam"], "momentum": None, "nesterov": None})
        with self.assertRaisesRegex(ValueError, "have the parts momentum instead of optimizer, momentum, nesterov"):
            read({"momentum": [0.5]})
        whole = {"optimizer": ["adam"], "momentum": [0.5], "nesterov": [1]}
        self.assertEqual([list(evoxo._genome.there(genome, {**whole, "optimizer": [own]})) for own in ("adam", "sgd", 1.5)],
                         [["optimizer"], ["optimizer", "momentum", "nesterov"], ["optimizer", "momentum"]])
        self.assertEqual(problem.evaluate("1", read({"optimizer": ["sgd"], "momentum": [0.5], "nesterov": [1]}), 0), {"f": [1.5]})

    def test_scales_steps_and_choices(self):
        rates, layers, drops = evoxo.reals(1, 1e-5, 1, log=True), evoxo.integers(1, 16, 130, step=16), evoxo.reals(1, 0, 0.95, step=0.1)
        sizes = evoxo.choices(2, ["adam", 32, 1e-05, True, None])
        declared = {"type": "choice", "length": 2, "choices": "adam, 32, 1e-05, true, null"}
        self.assertEqual(sizes.declaration(), declared)
        self.assertEqual(rates.declaration(), {"type": "real", "length": 1, "low": 1e-05, "high": 1, "scale": "log"})
        self.assertEqual(layers.declaration(), {"type": "integer", "length": 1, "low": 16, "high": 130, "step": 16})
        self.assertEqual(sizes.read([1e-05, 32]), [1e-05, 32])
        self.assertEqual(sizes.read([None, "adam"]), [None, "adam"])
        for value in (["sgd", 32], [33, 32], [32], [[], 32]):
            with self.subTest(value=value), self.assertRaises(ValueError):
                sizes.read(value)
        # As evoxo sends them: texts that are numbers come as numbers.
        texts = evoxo.choices(1, ["1.50", "1e3", "-0", "007"])
        self.assertEqual([texts.read([gene]) for gene in (1.5, 1000.0, "-0", "007")], [["1.50"], ["1e3"], ["-0"], ["007"]])
        with self.assertRaisesRegex(ValueError, "has 1 gene instead of 2"):
            sizes.read(["adam"])
        self.assertEqual([layers.corner(False), layers.corner(True), layers.middle()], [[16], [128], [64]])
        self.assertEqual([drops.corner(False), drops.corner(True), drops.middle()], [[0.0], [0.9], [0.4]])
        self.assertEqual([rates.corner(False), rates.corner(True)], [[1e-05], [1.0]])
        rng = random.Random(1)
        drawn = sorted(rates.draw(rng)[0] for _ in range(400))
        self.assertTrue(60 < sum(rate < 1e-4 for rate in drawn) < 110)
        self.assertEqual({drops.draw(rng)[0] for _ in range(400)}, {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9})

    def test_problems_that_make_no_sense(self):
        part = evoxo.bits(1)
        for sentence, options in (
            ("objectives is 'min cost', but it must be a list", {"objectives": "min cost"}),
            ("objectives is [], but it must be a list", {"objectives": []}),
            ("the objective 'cost' must be", {"objectives": ["cost"]}),
            ("objectives has the name 'a b'", {"objectives": ["min a b"]}),
            ("objectives has a name twice", {"objectives": ["min a", "max a"]}),
            ("constraints is the string 'g1', but it must be a list", {"constraints": "g1"}),
            ("measures has a name twice", {"measures": ["m", "m"]}),
            ("measures has 11 names", {"measures": [f"m{index}" for index in range(11)]}),
            ("constraints has 101 names", {"constraints": [f"c{index}" for index in range(101)]}),
            ("objectives has 406 characters", {"objectives": [f"min {letter * 62}" for letter in "abcdef"]}),
            ("the version is '', but it must be", {"version": ""}),
            ("the genome must be a part", {"genome": 3}),
            ("the genome must be a part", {"genome": {}}),
            ("a part cannot be called 'seed'", {"genome": {"seed": part}}),
            ("a part cannot be called 'a b'", {"genome": {"a b": part}}),
            ("a name can have at most 32 characters", {"genome": {"a" * 33: part}}),
            ("the genome has 65 parts, but it can have at most 64", {"genome": {f"p{index}": part for index in range(65)}}),
            ("the genome has 100,001 genes, but it can have at most 100,000", {"genome": evoxo.bits(100_001)}),
            ("has 100,001 genes, but", {"genome": {"a": evoxo.bits(100_000), "b": part}}),
            ("the part 'a' is 3, but it must be made by", {"genome": {"a": 3}}),
            ("the function is called '<lambda>'", {"function": lambda x: 1}),
            ("cost(x) cannot be called with the parts y by name", {"genome": {"y": part}}),
            ("cost(x) cannot be called with the parts x, y by name", {"genome": {"x": part, "y": part}}),
        ):
            with self.subTest(sentence=sentence):
                self.assert_refused(sentence, **options)

    def test_a_plain_function_is_no_problem(self):
        with self.assertRaises(TypeError) as raised:
            evoxo.main(cost)
        self.assertIn("needs a function decorated with @evoxo.problem", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
