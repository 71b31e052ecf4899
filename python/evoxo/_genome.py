"""Parts of a genome: their declarations for a worker, how their values are read, and genes to test a function with."""

from __future__ import annotations

import copy
import json
import math
import operator
import random
from dataclasses import dataclass, field, fields
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

Number = Union[int, float]
When = Mapping[str, object]
"""A part is there only while this other part has this value, or one of these values: {"optimizer": "adam"}."""
Condition = Tuple[str, Tuple[object, ...]]
"""The same as the name of the other part and its values."""
P = TypeVar("P", bound="Part")
Genes = Union[List[float], List[int], List[Any], str]
"""The value of one part as a function gets it: a list of numbers or choices, or a string."""

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

STEPS_MAX = 10**12
"""The most steps between two bounds."""

CHOICES_CHARACTERS_MAX = 1000
"""The most characters of all choices of a part, written one after another with ", " between them."""

CONDITION_VALUES_MAX = 100
"""The most values of a condition."""

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


def _whole_bound(name: str, value: object) -> int:
    whole = _whole_number(value)
    if whole is None:
        raise ValueError(f"{name} is {value!r}, but must be a whole number")
    return whole


def _check_bounds(low: Number, high: Number) -> None:
    for name, value in (("low", low), ("high", high)):
        if abs(value) > BOUND_MAX:
            raise ValueError(f"{name} is {value!r}, but a bound must be from -{BOUND_MAX:,} to {BOUND_MAX:,}")
    if low > high:
        raise ValueError(f"low is {low!r} and high is {high!r}, but low must not be greater than high")


@dataclass(frozen=True, repr=False)
class Part:
    """A part of a genome: genes of one type. `reals`, `integers`, `choices` and similar functions make parts."""

    length: int
    """The number of genes, from 1."""

    type = ""
    when: Optional[Condition] = field(default=None, init=False, repr=False)
    """The other part and its values with which this part is there. None: it is always there."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", _length(self.length))

    def only(self: P, when: Optional[When]) -> P:
        """The same part with this condition."""
        if when is None:
            return self
        if not isinstance(when, Mapping) or len(when) != 1:
            raise ValueError(f'when is {when!r:.80}, but must be a dict with one part and its values: {{"optimizer": "adam"}}')
        [(name, values)] = when.items()
        part = copy.copy(self)
        object.__setattr__(part, "when", (name, tuple(values) if isinstance(values, (list, tuple)) else (values,)))
        return part

    def __repr__(self) -> str:
        given = [one.name for one in fields(self) if one.init and getattr(self, one.name) != one.default]
        made = f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in given)})"
        return f"{made}.only({dict([self.when])!r})" if self.when else made

    def declaration(self) -> Dict[str, Union[str, Number]]:
        """The declaration for a worker or an experiment file: type, length, and further properties, without the name."""
        line: Dict[str, Union[str, Number]] = {"type": self.type, "length": self.length}
        if self.when:
            line["when"] = f"{self.when[0]} = {', '.join(map(_word, self.when[1]))}"
        return line

    def decides(self, value: object) -> bool:
        """Whether other parts can depend on this value of the part's only gene."""
        return False

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
        """Genes that are all as low as possible, or all as high as possible, as in a request."""
        raise NotImplementedError

    def middle(self) -> Genes:
        """Genes in the middle of their range, as in a request."""
        raise NotImplementedError

    def draw(self, rng: random.Random) -> Genes:
        """Random genes, as in a request."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class _Numbers(Part):
    """Numbers from `low` to `high`."""

    low: Number
    high: Number
    log: bool = False
    """Whether ratios count, not differences: random values are as often from 1 to 10 as from 10 to 100."""
    step: Number = 0
    """The distance between two values, the first of which is `low`. 0: none."""

    @staticmethod
    def _number(name: str, value: Any) -> Number:
        """A bound or step of this name in its usual form. Raises ValueError if it is not valid."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, self._number(name, getattr(self, name)))
        _check_bounds(self.low, self.high)
        if self.log and self.low <= 0:
            raise ValueError(f"low is {self.low!r}, but with log=True it must be above 0")
        if self.step < 0:
            raise ValueError(f"step is {self.step!r}, but must be 0 or more")
        if self.log and self.step:
            raise ValueError(f"log is True and step is {self.step!r}, but a logarithmic scale has no steps")
        if self.step and self._steps() > STEPS_MAX:
            raise ValueError(f"step is {self.step!r}, but there can be at most {STEPS_MAX:,} steps")

    def declaration(self) -> Dict[str, Union[str, Number]]:
        line: Dict[str, Union[str, Number]] = {**super().declaration(), "low": self.low, "high": self.high}
        if self.log:
            line["scale"] = "log"
        if self.step:
            line["step"] = self.step
        return line

    def _at(self, share: float) -> float:
        """The value at this share of the range, without regard to steps."""
        if self.log:
            # Decimals are the same on every machine, and powers of floats are not.
            with localcontext(Context(prec=40)):
                low, high = Decimal(self.low).ln(), Decimal(self.high).ln()
                value = float((low + (high - low) * Decimal(share)).exp())
            return min(max(value, float(self.low)), float(self.high))
        return self.low + (self.high - self.low) * share

    def _steps(self) -> int:
        low, high, step = (Fraction(plain(number)) for number in (self.low, self.high, self.step))
        return math.floor((high - low) / step)

    def _after(self, steps: int) -> Number:
        return float(Fraction(plain(self.low)) + steps * Fraction(plain(self.step)))

    def _one(self, rng: random.Random) -> Number:
        return self._after(rng.randint(0, self._steps())) if self.step else self._at(rng.random())

    def corner(self, high: bool) -> Genes:
        end = self._after(self._steps()) if high and self.step else float(self.high if high else self.low)
        return [end] * self.length

    def middle(self) -> Genes:
        return [self._after(self._steps() // 2) if self.step else self._at(0.5)] * self.length

    def draw(self, rng: random.Random) -> Genes:
        return [self._one(rng) for _ in range(self.length)]


@dataclass(frozen=True, repr=False)
class Reals(_Numbers):
    """Real numbers from `low` to `high`; a function gets a list of floats."""

    type = "real"
    _number = staticmethod(_real_bound)

    def read(self, value: object) -> Genes:
        try:
            return list(map(float, self._list(value)))
        except TypeError:
            raise ValueError(f"has a gene that is not a number: {value!r:.80}") from None


@dataclass(frozen=True, repr=False)
class Integers(_Numbers):
    """Whole numbers from `low` to `high`, both included; a function gets a list of ints."""

    type = "integer"
    _number = staticmethod(_whole_bound)

    def read(self, value: object) -> Genes:
        return self._whole(value)

    def _at(self, share: float) -> int:
        return round(super()._at(share)) if self.log else int(self.low) + math.floor((self.high - self.low) * share)

    def _after(self, steps: int) -> int:
        return int(self.low + steps * self.step)

    def _one(self, rng: random.Random) -> int:
        return int(super()._one(rng)) if self.step or self.log else rng.randint(int(self.low), int(self.high))

    def corner(self, high: bool) -> Genes:
        return [int(end) for end in super().corner(high)]

    def decides(self, value: object) -> bool:
        if type(value) is not int or not self.low <= value <= self.high:
            return False
        return not self.step or (value - int(self.low)) % int(self.step) == 0


@dataclass(frozen=True, repr=False)
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

    def decides(self, value: object) -> bool:
        return type(value) is int and value in (0, 1)


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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

    def decides(self, value: object) -> bool:
        # Commas separate the values of a condition.
        return isinstance(value, str) and len(value) == 1 and value in self.alphabet and value not in ", "


def _word(option: object) -> str:
    """An option as a word of the declaration. Requests have words that look like numbers, true, false or null as such."""
    if option is not None and not isinstance(option, (str, bool, int, float)):
        raise ValueError(f"the option {option!r:.80} must be a text, a number, True, False or None")
    return option if isinstance(option, str) else json.dumps(option)


def _key(option: object) -> str:
    """What options and genes are compared by: "1.50", which comes as the number 1.5, is 1.5."""
    word = _word(option)
    try:
        return json.dumps(json.loads(word))
    except ValueError:
        return word


@dataclass(frozen=True, repr=False)
class Choices(Part):
    """One of several options for each gene; a function gets a list of options."""

    options: Tuple[object, ...]

    type = "choice"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "options", tuple(self.options))
        words = list(map(_word, self.options))
        for word in words:
            if not word or word != word.strip() or not (word.isascii() and word.isprintable()) or set(word) & set(',"\\'):
                raise ValueError(
                    f"the option {word!r} must have printable ASCII characters without commas, quotes and backslashes"
                )
        if len(words) < 2 or len(self._by_key) < len(words):
            raise ValueError(f"the options are {words!r}, but there must be two or more, all different")
        if len(", ".join(words)) > CHOICES_CHARACTERS_MAX:
            raise ValueError(f"the options of a part can have at most {CHOICES_CHARACTERS_MAX:,} characters together")

    @cached_property
    def _by_key(self) -> Dict[str, object]:
        return {_key(option): option for option in self.options}

    def declaration(self) -> Dict[str, Union[str, Number]]:
        return {**super().declaration(), "choices": ", ".join(map(_word, self.options))}

    def read(self, value: object) -> Genes:
        genes = self._list(value)
        try:
            return [self._by_key[_key(gene)] for gene in genes]
        except (KeyError, ValueError):
            raise ValueError(f"has a gene that is not one of the options: {value!r:.80}") from None

    def corner(self, high: bool) -> Genes:
        return [self.options[-1 if high else 0]] * self.length

    def middle(self) -> Genes:
        return [self.options[index % len(self.options)] for index in range(self.length)]

    def draw(self, rng: random.Random) -> Genes:
        return [rng.choice(self.options) for _ in range(self.length)]

    def decides(self, value: object) -> bool:
        return _word(value) in map(_word, self.options)


def reals(
    n: int, low: Number, high: Number, *, log: bool = False, step: Number = 0, when: Optional[When] = None
) -> Reals:
    """`n` real numbers from `low` to `high`, as numpy prints them: with at most 18 digits after the point.

    log: the order of magnitude is unknown, for example of a learning rate from 0.00001 to 1.
    step: only `low`, `low` + `step`, `low` + 2 `step` and so on.
    when: the part is there only while another part of length 1 has this value, or one of these values, as in
        `when={"optimizer": "adam"}`. The other part has choices, whole numbers, bits or symbols. While this part is not there,
        the function gets None.
    """
    return Reals(n, low, high, log, step).only(when)


def integers(
    n: int, low: int, high: int, *, log: bool = False, step: int = 0, when: Optional[When] = None
) -> Integers:
    """`n` whole numbers from `low` to `high`, both included; `log`, `step` and `when` as for `reals`."""
    return Integers(n, low, high, log, step).only(when)


def choices(n: int, options: Sequence[object], *, when: Optional[When] = None) -> Choices:
    """`n` times one of these options: two or more different texts or numbers, such as ["adam", "sgd"]; `when` as for `reals`."""
    return Choices(n, tuple(options)).only(when)


def bits(n: int, *, when: Optional[When] = None) -> Bits:
    """`n` zeros and ones; `when` as for `reals`."""
    return Bits(n).only(when)


def permutation(n: int, *, when: Optional[When] = None) -> Permutation:
    """An order of the numbers from 0 to `n` - 1; `when` as for `reals`."""
    return Permutation(n).only(when)


def symbols(n: int, alphabet: str, *, when: Optional[When] = None) -> Symbols:
    """A string of `n` characters of `alphabet`: two or more different printable ASCII characters; `when` as for `reals`."""
    return Symbols(n, alphabet).only(when)


def _check_condition(genome: Mapping[str, Part], name: str) -> None:
    on, values = genome[name].when or ("", ())
    if on not in genome:
        raise ValueError(f"the part {name!r} depends on {on!r}, but the genome has no such part: it has {', '.join(genome)}")
    chain = [name]
    while chain[-1] in genome and (condition := genome[chain[-1]].when):
        if condition[0] in chain:
            raise ValueError(f"the part {name!r} depends on itself, by way of {on!r}: remove one of these conditions")
        chain.append(condition[0])
    if type(genome[on]) not in (Choices, Integers, Bits, Symbols) or genome[on].length != 1:
        raise ValueError(f"the part {name!r} depends on {on!r}, which must have choices, whole numbers, bits or symbols, and length 1")
    if not values or len(values) > CONDITION_VALUES_MAX:
        raise ValueError(f"the part {name!r} depends on {len(values)} values of {on!r}, but 1 to {CONDITION_VALUES_MAX} are possible")
    for value in values:
        if not genome[on].decides(value):
            raise ValueError(f"the part {name!r} depends on {on!r} being {value!r}, which is not one of its values")
    if len(str(genome[name].declaration()["when"])) > CHOICES_CHARACTERS_MAX:
        raise ValueError(f"the values on which the part {name!r} depends can have at most {CHOICES_CHARACTERS_MAX:,} characters")


def there(genome: Mapping[str, Part], genes: Mapping[str, Genes]) -> Dict[str, Genes]:
    """The genes of the parts that are there."""

    def is_there(name: str) -> bool:
        on, values = genome[name].when or ("", ())
        return not on or (is_there(on) and _key(genes[on][0]) in map(_key, values))

    return {name: part for name, part in genes.items() if is_there(name)}


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
    for name, part in genome.items():
        if part.when:
            _check_condition(genome, name)
    genes = sum(part.length for part in genome.values())
    if genes > GENES_MAX:
        raise ValueError(f"the genome has {genes:,} genes, but it can have at most {GENES_MAX:,}")
    return dict(genome)
