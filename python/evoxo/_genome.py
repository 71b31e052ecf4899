"""Parts of a genome: their declarations for a worker, how their values are read, and genes to test a function with."""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Dict, List, Mapping, Optional, Union

Number = Union[int, float]
Genes = Union[List[float], List[int], str]
"""The value of one part as a function gets it: a list of numbers, or a string."""

PART = "x"
"""The name of the part if a genome has only one."""

DECIMALS_MAX = 18
"""The most digits of a bound after its point. More would not be exact in an experiment file."""

TERM_MAX = 2**63 - 1
"""The greatest numerator or denominator of a bound as a fraction in lowest terms."""

BOUND_MAX = 10**12
"""The greatest bound; the least is its negative."""

PART_CHARACTERS_MAX = 32
"""The most characters of a part's name."""

PARTS_MAX = 64
"""The most parts of a genome."""

GENES_MAX = 100_000
"""The most genes of all parts together."""


def counted(count: int, one: str) -> str:
    """A count of things: "1 gene", "3 genes"."""
    return f"{count} {one}{'' if count == 1 else 's'}"


def plain(value: Number) -> str:
    """A number as a decimal without an exponent, such as -5 or 0.000001."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _whole_number(value: object) -> Optional[int]:
    """A whole number of any type, including those of numpy; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _length(length: object) -> int:
    whole = _whole_number(length)
    if whole is None or whole < 1:
        raise ValueError(f"the length of a part is {length!r}, but it must be a whole number from 1")
    return whole


def _real_bound(name: str, value: Number) -> Number:
    """A bound as the shortest equal number: -5 instead of -5.0."""
    if isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, but must be a number")
    number = float(value)
    if number - number != 0:
        raise ValueError(f"{name} is {value!r}, but it must be a finite number")
    text = plain(number)
    fraction = Fraction(text)
    if len(text.partition(".")[2]) > DECIMALS_MAX or max(abs(fraction.numerator), fraction.denominator) > TERM_MAX:
        raise ValueError(f"{name} is {value!r}, but a bound can have at most {DECIMALS_MAX} digits after the point")
    return int(number) if number.is_integer() else number


def _check_bounds(low: Number, high: Number) -> None:
    for name, value in (("low", low), ("high", high)):
        if abs(value) > BOUND_MAX:
            raise ValueError(f"{name} is {value!r}, but a bound must be from -{BOUND_MAX:,} to {BOUND_MAX:,}")
    if low > high:
        raise ValueError(f"low is {low!r} and high is {high!r}, but low must not be greater than high")


@dataclass(frozen=True)
class Part:
    """A part of a genome: genes of one type. `reals`, `integers`, `bits`, `permutation` and `symbols` make parts."""

    length: int
    """The number of genes, from 1."""

    type = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", _length(self.length))

    def declaration(self) -> Dict[str, Union[str, Number]]:
        """The declaration for a worker or an experiment file: type, length, and further properties, without the name."""
        return {"type": self.type, "length": self.length}

    def read(self, value: object) -> Genes:
        """Reads the genes of a request into the form that a function gets. Raises ValueError if they do not fit."""
        raise NotImplementedError

    def _list(self, value: object) -> List[Number]:
        if not isinstance(value, list):
            raise ValueError(f"is not a list but {value!r:.80}")
        if len(value) != self.length:
            raise ValueError(f"has {counted(len(value), 'gene')} instead of {self.length}")
        return value

    def _whole(self, value: object) -> List[int]:
        genes = self._list(value)
        for gene in genes:
            if type(gene) is not int:
                raise ValueError(f"has the gene {gene!r:.80}, which is not a whole number")
        return [int(gene) for gene in genes]

    def corner(self, high: bool) -> Genes:
        """Genes that are all as low as possible, or all as high as possible."""
        raise NotImplementedError

    def middle(self) -> Genes:
        """Genes in the middle of their range."""
        raise NotImplementedError

    def draw(self, rng: random.Random) -> Genes:
        """Random genes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Reals(Part):
    """Real numbers from `low` to `high`; a function gets a list of floats."""

    low: Number
    high: Number

    type = "real"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "low", _real_bound("low", self.low))
        object.__setattr__(self, "high", _real_bound("high", self.high))
        _check_bounds(self.low, self.high)

    def declaration(self) -> Dict[str, Union[str, Number]]:
        return {**super().declaration(), "low": self.low, "high": self.high}

    def read(self, value: object) -> Genes:
        try:
            return list(map(float, self._list(value)))
        except TypeError:
            raise ValueError(f"has a gene that is not a number: {value!r:.80}") from None

    def corner(self, high: bool) -> Genes:
        return [float(self.high if high else self.low)] * self.length

    def middle(self) -> Genes:
        return [(self.low + self.high) / 2] * self.length

    def draw(self, rng: random.Random) -> Genes:
        return [rng.uniform(self.low, self.high) for _ in range(self.length)]


@dataclass(frozen=True)
class Integers(Part):
    """Whole numbers from `low` to `high`, both included; a function gets a list of ints."""

    low: int
    high: int

    type = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("low", self.low), ("high", self.high)):
            whole = _whole_number(value)
            if whole is None:
                raise ValueError(f"{name} is {value!r}, but must be a whole number")
            object.__setattr__(self, name, whole)
        _check_bounds(self.low, self.high)

    def declaration(self) -> Dict[str, Union[str, Number]]:
        return {**super().declaration(), "low": self.low, "high": self.high}

    def read(self, value: object) -> Genes:
        return self._whole(value)

    def corner(self, high: bool) -> Genes:
        return [self.high if high else self.low] * self.length

    def middle(self) -> Genes:
        return [(self.low + self.high) // 2] * self.length

    def draw(self, rng: random.Random) -> Genes:
        return [rng.randint(self.low, self.high) for _ in range(self.length)]


@dataclass(frozen=True)
class Bits(Part):
    """Zeros and ones; a function gets a list of the ints 0 and 1."""

    type = "bits"

    def read(self, value: object) -> Genes:
        return self._whole(value)

    def corner(self, high: bool) -> Genes:
        return [int(high)] * self.length

    def middle(self) -> Genes:
        return [index % 2 for index in range(self.length)]

    def draw(self, rng: random.Random) -> Genes:
        return [rng.getrandbits(1) for _ in range(self.length)]


@dataclass(frozen=True)
class Permutation(Part):
    """An order of the numbers from 0 to length - 1; a function gets a list of ints."""

    type = "permutation"

    def read(self, value: object) -> Genes:
        return self._whole(value)

    def corner(self, high: bool) -> Genes:
        genes = list(range(self.length))
        return genes[::-1] if high else genes

    def middle(self) -> Genes:
        genes = list(range(self.length))
        return genes[::2] + genes[1::2]

    def draw(self, rng: random.Random) -> Genes:
        genes = list(range(self.length))
        rng.shuffle(genes)
        return genes


@dataclass(frozen=True)
class Symbols(Part):
    """Characters of an alphabet; a function gets one string."""

    alphabet: str

    type = "symbols"

    def __post_init__(self) -> None:
        super().__post_init__()
        alphabet = self.alphabet
        if not isinstance(alphabet, str) or not (alphabet.isascii() and alphabet.isprintable()):
            raise ValueError(f"the alphabet is {alphabet!r}, but must be a string of printable ASCII characters")
        if len(alphabet) < 2 or len(set(alphabet)) < len(alphabet):
            raise ValueError(f"the alphabet is {alphabet!r}, but must have two or more characters, all different")

    def declaration(self) -> Dict[str, Union[str, Number]]:
        return {**super().declaration(), "alphabet": self.alphabet}

    def read(self, value: object) -> Genes:
        if not isinstance(value, str):
            raise ValueError(f"is not a string but {value!r:.80}")
        if len(value) != self.length:
            raise ValueError(f"has {len(value)} characters instead of {self.length}")
        return value

    def corner(self, high: bool) -> Genes:
        return self.alphabet[-1 if high else 0] * self.length

    def middle(self) -> Genes:
        return (self.alphabet * self.length)[: self.length]

    def draw(self, rng: random.Random) -> Genes:
        return "".join(rng.choice(self.alphabet) for _ in range(self.length))


def reals(n: int, low: Number, high: Number) -> Reals:
    """`n` real numbers from `low` to `high`, as numpy prints them: with at most 18 digits after the point."""
    return Reals(n, low, high)


def integers(n: int, low: int, high: int) -> Integers:
    """`n` whole numbers from `low` to `high`, both included."""
    return Integers(n, low, high)


def bits(n: int) -> Bits:
    """`n` zeros and ones."""
    return Bits(n)


def permutation(n: int) -> Permutation:
    """An order of the numbers from 0 to `n` - 1."""
    return Permutation(n)


def symbols(n: int, alphabet: str) -> Symbols:
    """A string of `n` characters of `alphabet`: two or more different printable ASCII characters."""
    return Symbols(n, alphabet)


def parts_of(genome: Union[Part, Mapping[str, Part]]) -> Dict[str, Part]:
    """The parts of a genome by name. If the genome is a single part, its name is "x"."""
    if isinstance(genome, Part):
        genome = {PART: genome}
    if not isinstance(genome, Mapping) or not genome:
        raise ValueError("the genome must be a part, such as evoxo.reals(30, -5, 5), or a dict of named parts")
    if len(genome) > PARTS_MAX:
        raise ValueError(f"the genome has {len(genome)} parts, but it can have at most {PARTS_MAX}")
    for name, part in genome.items():
        if not isinstance(name, str) or not (name.isascii() and name.isidentifier()) or name == "seed":
            raise ValueError(f"a part cannot be called {name!r}: use a parameter's name other than seed")
        if len(name) > PART_CHARACTERS_MAX:
            raise ValueError(f"a part cannot be called {name!r}: a name can have at most {PART_CHARACTERS_MAX} characters")
        if not isinstance(part, Part):
            raise ValueError(f"the part {name!r} is {part!r}, but it must be made by evoxo.reals, evoxo.bits or a similar function")
    genes = sum(part.length for part in genome.values())
    if genes > GENES_MAX:
        raise ValueError(f"the genome has {genes:,} genes, but it can have at most {GENES_MAX:,}")
    return dict(genome)
