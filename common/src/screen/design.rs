//! Two-level designs 2^(k-p): factors, generators, the defining relation, the resolution, and which effects are aliased. The
//! analysis of responses is elsewhere.

use std::fmt;

/// The most factors: the alphabet without I.
pub const FACTORS_MAX: usize = 25;
/// The most treatments of a design.
pub const TREATMENTS_MAX: usize = 512;
/// At most this many words of a defining relation are listed individually.
const WORDS_MAX: usize = 15;

/// A product of factors: "ABD". The empty product is the identity I.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word(u32);

impl Word {
    /// The factor with this letter; `None` unless the letter is from A to Z and not I.
    #[must_use]
    pub fn factor(letter: char) -> Option<Self> {
        (letter.is_ascii_uppercase() && letter != 'I').then(|| Self(1 << (letter as u32 - 'A' as u32)))
    }

    /// The product of several factors, each at most once; `None` if a letter is not a factor or is repeated.
    #[must_use]
    pub fn read(letters: &str) -> Option<Self> {
        letters.chars().try_fold(Self(0), |word, letter| {
            let factor = Self::factor(letter)?;
            (word.0 & factor.0 == 0).then_some(Self(word.0 | factor.0))
        })
    }

    /// The product of two words: a factor times itself is I.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// The number of its factors.
    #[must_use]
    pub fn length(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it contains all factors of the other word.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Its letters in order.
    pub fn letters(self) -> impl Iterator<Item = char> {
        ('A'..='Z').filter(move |letter| self.0 >> (*letter as u32 - 'A' as u32) & 1 == 1)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("I"),
            _ => self.letters().try_for_each(|letter| write!(f, "{letter}")),
        }
    }
}

/// A word with its sign, for words that are estimated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The main effect or interaction.
    pub word: Word,
    /// Whether it enters the contrast with a minus sign.
    pub negative: bool,
}

/// A factor as a column of signs: a product of base factors, and its sign.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// A set of base factors, by their indices.
    bases: u32,
    negative: bool,
}

/// A full factorial (no generators) or a regular fraction of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// In alphabetical order.
    factors: Vec<Word>,
    /// For each generated factor, the word that it is set equal to, in the order of the file.
    generators: Vec<(Word, Alias)>,
    /// The factors without a generator.
    bases: Vec<Word>,
    resolution: Option<u32>,
}

impl Design {
    /// A design of these factors, with generators as written: "F = ABC" or "F = -ABC".
    ///
    /// # Errors
    /// The index of a bad generator and a sentence, or `None` and a sentence if the whole design is wrong.
    pub fn new(letters: &[char], generators: &[String]) -> Result<Self, (Option<usize>, String)> {
        let mut factors: Vec<Word> = letters.iter().filter_map(|letter| Word::factor(*letter)).collect();
        factors.sort_unstable();
        let all = factors.iter().fold(Word::default(), |all, factor| all.times(*factor));
        let mut read: Vec<(Word, Alias)> = Vec::new();
        for (place, text) in generators.iter().enumerate() {
            let fail = |sentence: String| (Some(place), format!("generator {text:?}: {sentence}"));
            let generator = generator(text, all).map_err(fail)?;
            if read.iter().any(|(factor, _)| *factor == generator.0) {
                return Err(fail(format!("{} has a generator already", generator.0)));
            }
            read.push(generator);
        }
        let generated = |word: Word| read.iter().find(|(factor, _)| word.contains(*factor)).map(|(factor, _)| *factor);
        for (place, (text, (_, alias))) in generators.iter().zip(&read).enumerate() {
            if let Some(factor) = generated(alias.word) {
                let sentence = format!("generator {text:?}: {factor} is generated itself: name factors without one");
                return Err((Some(place), sentence));
            }
        }
        let bases: Vec<Word> = factors.iter().copied().filter(|factor| generated(*factor).is_none()).collect();
        if bases.len() > TREATMENTS_MAX.ilog2() as usize {
            let most = TREATMENTS_MAX.ilog2();
            return Err((
                None,
                format!(
                    "{} factors without a generator make 2^{0} treatments, more than {TREATMENTS_MAX}: give \
                     generators to all but {most} of them",
                    bases.len()
                ),
            ));
        }
        if factors.len() >= 1 << bases.len() {
            let needed = (factors.len() + 1).next_power_of_two();
            return Err((
                None,
                format!(
                    "{} factors need at least {needed} treatments, and the generators leave {}: remove generators",
                    factors.len(),
                    1 << bases.len()
                ),
            ));
        }
        let mut design = Self { factors, generators: read, bases, resolution: None };
        let shortest = design.words().min_by_key(|alias| (alias.word.length(), alias.word));
        match shortest {
            Some(Alias { word, .. }) if word.length() <= 2 => {
                let pair: Vec<String> = word.letters().map(String::from).collect();
                let pair = pair.join(" with ");
                Err((
                    None,
                    format!(
                        "the generators confound {pair} (I = {word}, resolution II): their effects could not \
                         be told apart; give other generators"
                    ),
                ))
            }
            shortest => {
                design.resolution = shortest.map(|alias| alias.word.length());
                Ok(design)
            }
        }
    }

    /// The factors, in alphabetical order.
    #[must_use]
    pub fn factors(&self) -> &[Word] {
        &self.factors
    }

    /// The number of treatments, 2^(k-p).
    #[must_use]
    pub fn treatments(&self) -> usize {
        1 << self.bases.len()
    }

    /// The length of the shortest word in the defining relation; `None` for a full factorial, in which nothing is aliased.
    #[must_use]
    pub fn resolution(&self) -> Option<u32> {
        self.resolution
    }

    /// "a 2^(6-2) fractional factorial design of resolution IV".
    #[must_use]
    pub fn name(&self) -> String {
        let (k, p) = (self.factors.len(), self.generators.len());
        match self.resolution {
            None => format!("2^{k} full factorial design"),
            Some(resolution) => format!("2^({k}-{p}) fractional factorial design of resolution {}", roman(resolution)),
        }
    }

    /// The generators as written.
    #[must_use]
    pub fn generators(&self) -> Vec<String> {
        self.generators.iter().map(|(factor, alias)| format!("{factor} = {}", signed(*alias))).collect()
    }

    /// "I = ABCE = BCDF = ADEF". A long relation lists only its shortest words and the number of the others. `None` for a
    /// full factorial.
    #[must_use]
    pub fn defining_relation(&self) -> Option<String> {
        let resolution = self.resolution?;
        let count = self.words().count();
        let mut words: Vec<Alias> =
            self.words().filter(|alias| count <= WORDS_MAX || alias.word.length() == resolution).collect();
        words.sort_by_key(|alias| (alias.word.length(), alias.word.to_string()));
        let shortest = words.len();
        words.truncate(WORDS_MAX);
        let named: Vec<String> = words.iter().map(|alias| signed(*alias)).collect();
        let rest = match count - named.len() {
            0 => String::new(),
            rest if shortest > named.len() => format!(" = ... and {rest} more words of at least {resolution} letters"),
            rest => format!(" = ... and {rest} longer words"),
        };
        Some(format!("I = {}{rest}", named.join(" = ")))
    }

    /// The words of the defining relation except I: all products of the generators' words.
    fn words(&self) -> impl Iterator<Item = Alias> + '_ {
        (1_u32..1 << self.generators.len()).map(|chosen| {
            let all = self.generators.iter().enumerate().filter(move |(place, _)| chosen >> place & 1 == 1);
            let product = |product: Alias, (_, (factor, alias)): (usize, &(Word, Alias))| Alias {
                word: product.word.times(*factor).times(alias.word),
                negative: product.negative != alias.negative,
            };
            all.fold(Alias { word: Word::default(), negative: false }, product)
        })
    }

    /// The contrast that estimates a main effect or interaction: from 1 to the number of treatments minus 1, or 0 for I.
    fn column(&self, word: Word) -> Column {
        let place = |factor: Word| self.bases.iter().position(|base| *base == factor);
        let bases = |word: Word| {
            word.letters().filter_map(Word::factor).filter_map(place).fold(0_u32, |bases, place| bases | 1 << place)
        };
        let generated = self.generators.iter().filter(|(factor, _)| word.contains(*factor));
        generated.fold(Column { bases: bases(word), negative: false }, |column, (_, alias)| Column {
            bases: column.bases ^ bases(alias.word),
            negative: column.negative != alias.negative,
        })
    }

    /// The sign of a main effect or interaction in a treatment, 1 or -1. Treatments are in standard order (Yates's) of the
    /// factors without a generator: the first factor changes from one treatment to the next.
    ///
    /// # Panics
    /// If there is no such treatment.
    #[must_use]
    pub fn sign(&self, word: Word, treatment: usize) -> f64 {
        assert!(treatment < self.treatments(), "treatment {treatment} of {}", self.treatments());
        let Column { bases, negative } = self.column(word);
        let low = (bases & !(treatment as u32)).count_ones();
        if (low % 2 == 1) != negative { -1.0 } else { 1.0 }
    }

    /// Whether a factor is at its high level in a treatment.
    #[must_use]
    pub fn is_high(&self, factor: Word, treatment: usize) -> bool {
        self.sign(factor, treatment) > 0.0
    }

    /// The name of a treatment (Yates 1937): the lower-case letters of the factors at their high levels, or "(1)".
    #[must_use]
    pub fn treatment(&self, treatment: usize) -> String {
        let high = self.factors.iter().filter(|factor| self.is_high(**factor, treatment));
        let name: String = high.map(|factor| factor.to_string().to_lowercase()).collect();
        if name.is_empty() { "(1)".into() } else { name }
    }

    /// What each contrast estimates: main effects and two-factor interactions; if there are none, three-factor interactions;
    /// if there are none of these either, the interaction of its base factors. The first alias of each contrast is positive.
    ///
    /// Contrasts of main effects come first, then those of two-factor interactions, then the others.
    #[must_use]
    pub fn aliases(&self) -> Vec<Vec<Alias>> {
        let mut of: Vec<Vec<Alias>> = vec![Vec::new(); self.treatments()];
        let mut add = |word: Word| {
            let Column { bases, negative } = self.column(word);
            of[bases as usize].push(Alias { word, negative });
        };
        let factors = &self.factors;
        let pairs = || (0..factors.len()).flat_map(|one| (one + 1..factors.len()).map(move |two| (one, two)));
        factors.iter().for_each(|factor| add(*factor));
        pairs().for_each(|(one, two)| add(factors[one].times(factors[two])));
        for (one, two) in pairs() {
            factors[two + 1..].iter().for_each(|three| add(factors[one].times(factors[two]).times(*three)));
        }
        // Three-factor interactions are listed only if there is nothing shorter.
        for list in &mut of {
            let shortest = list.first().map_or(0, |first| first.word.length());
            list.retain(|alias| alias.word.length() <= shortest.max(2));
        }
        for (bases, list) in of.iter_mut().enumerate().filter(|(_, list)| list.is_empty()) {
            let of_bases = self.bases.iter().enumerate().filter(|(place, _)| bases >> place & 1 == 1);
            let word = of_bases.fold(Word::default(), |word, (_, base)| word.times(*base));
            list.push(Alias { word, negative: false });
        }
        let mut contrasts: Vec<Vec<Alias>> = of.into_iter().skip(1).collect();
        for list in &mut contrasts {
            let negative = list[0].negative;
            list.iter_mut().for_each(|alias| alias.negative ^= negative);
        }
        contrasts.sort_by_key(|list| (list[0].word.length(), list[0].word.to_string()));
        contrasts
    }
}

/// Parses "F = ABC" or "F = -ABC" for a design with all these factors.
fn generator(text: &str, all: Word) -> Result<(Word, Alias), String> {
    let form = || "write it as \"F = ABC\" or \"F = -ABC\", each letter once".to_owned();
    let (left, right) = text.split_once('=').ok_or_else(form)?;
    let right = right.trim();
    let (negative, right) = right.strip_prefix('-').map_or((false, right), |rest| (true, rest.trim()));
    let (factor, word) = (Word::read(left.trim()).ok_or_else(form)?, Word::read(right).ok_or_else(form)?);
    if factor.length() != 1 || word.length() == 0 || word.contains(factor) {
        return Err(form());
    }
    let listed = |letters: Vec<char>| letters.into_iter().map(String::from).collect::<Vec<_>>().join(", ");
    let unknown: Vec<char> =
        factor.times(word).letters().filter(|letter| !all.letters().any(|it| it == *letter)).collect();
    if !unknown.is_empty() {
        return Err(format!(
            "there is no factor {}: the factors are {}",
            listed(unknown),
            listed(all.letters().collect())
        ));
    }
    Ok((factor, Alias { word, negative }))
}

/// A word, with a minus sign if it is negative.
fn signed(alias: Alias) -> String {
    format!("{}{}", if alias.negative { "-" } else { "" }, alias.word)
}

/// A number from 1 to 39 in Roman numerals, as resolutions are written.
fn roman(number: u32) -> String {
    const ONES: [&str; 10] = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"];
    "X".repeat(number as usize / 10) + ONES[number as usize % 10]
}
