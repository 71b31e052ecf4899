//! The typed form of settings: a struct with the schema's fields, and the macros that declare both.

use super::{Schema, Value, Values};
use crate::ratio::Ratio;

/// Settings as a type. [`settings!`](crate::settings!) implements it.
pub trait Typed: Sized {
    /// The settings as data.
    const SCHEMA: &'static Schema;

    /// The typed form of values of the schema.
    ///
    /// # Panics
    /// If the values are of another schema.
    #[must_use]
    fn of(values: &Values) -> Self;
}

/// Settings together with their text, for kinds whose tasks carry the text; see [`Values::to_text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithText<S> {
    /// The typed form.
    pub settings: S,
    /// The text.
    pub text: String,
}

impl<S: Typed> Typed for WithText<S> {
    const SCHEMA: &'static Schema = S::SCHEMA;

    fn of(values: &Values) -> Self {
        Self { settings: S::of(values), text: values.to_text() }
    }
}

/// A setting that is one of several words. [`choice!`](crate::choice!) declares such settings.
pub trait Choice: Sized {
    /// The words, each with its meaning.
    #[must_use]
    fn choices() -> &'static [(&'static str, &'static str)];

    /// The choice with this word.
    ///
    /// # Panics
    /// If there is no such word. Values of a schema are checked when they are read.
    #[must_use]
    fn of(word: &str) -> Self;

    /// The word in experiment files.
    #[must_use]
    fn word(&self) -> &'static str;
}

/// A type that a field of a settings struct can have.
pub trait FromValue {
    /// Converts the value to this type.
    ///
    /// # Panics
    /// If the value has another shape than the declared one, or is out of the type's range: then the declaration is wrong.
    fn from_value(value: &Value) -> Self;
}

impl<T: Choice> FromValue for T {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Choice(word) => Self::of(word),
            other => panic!("a choice was declared, not {other:?}"),
        }
    }
}

impl FromValue for Ratio {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Decimal(value) => *value,
            other => panic!("a decimal was declared, not {other:?}"),
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Text(value) => value.clone(),
            other => panic!("a text was declared, not {other:?}"),
        }
    }
}

impl FromValue for Vec<Ratio> {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Numbers(values) => values.clone(),
            other => panic!("a list of numbers was declared, not {other:?}"),
        }
    }
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Self {
                let converted = match value {
                    Value::Integer(value) => Self::try_from(*value).ok(),
                    Value::Decimal(value) if value.denominator() == 1 => Self::try_from(value.numerator()).ok(),
                    _ => None,
                };
                converted.unwrap_or_else(|| panic!("a whole number was declared, not {value:?}"))
            }
        }
    )*};
}
whole!(u64, u32, usize, i64, i32);

/// The name of a setting, from a field's identifier, which may be a raw one such as `r#type`.
#[must_use]
pub const fn field_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// Declares the settings of a kind of experiment: a struct, an enum of its fields' names for [`Schema::check`], and the
/// schema of both. `evoxo new` shows a field's documentation to people.
///
/// ```
/// use evoxo_common::{choice, ratio::Ratio, settings};
///
/// choice! {
///     /// Who begins.
///     pub enum Side {
///         /// the first player
///         X = "X",
///         /// the second player
///         O = "O",
///     }
/// }
///
/// settings! {
///     /// What the experiment is, in a sentence.
///     pub struct Settings, names Name, schema SCHEMA {
///         /// Games of a player.
///         games: u32 = whole(1, 1_000, "20"),
///         /// What a loss costs.
///         penalty: Ratio = decimal(0, 100, "6.5") when side is ["O"],
///         /// The side that evolves.
///         side: Side = choice("O"),
///         /// Players of a task: results do not depend on it.
///         slice: usize = execution whole(0, 100, "0"),
///     }
///     check(|settings| match settings.games % 2 {
///         0 => Vec::new(),
///         _ => vec![(Name::games, "games must be even".into())],
///     })
/// }
///
/// let settings = Settings::of(&SCHEMA.defaults());
/// assert_eq!((settings.games, settings.side), (20, Side::O));
/// ```
///
/// `check` finds problems that involve several fields. `check`, `notes` and `follows` may be left out.
///
/// Shapes are `whole(MIN, MAX, DEFAULT)`, `signed(...)`, `decimal(...)` for exact arithmetic (six digits after the point),
/// `real(...)` for floats (18), `choice(DEFAULT)`, `text(BYTES_MAX, DEFAULT)` and `numbers(COUNT_MAX, MIN, MAX, DEFAULT)`,
/// each with its default written as in a file but without quotes; and `list(SCHEMA, COUNT_MAX, DEFAULT)`, a list of tables.
///
/// The word before a shape is the setting's [`Scope`](crate::settings::Scope): `execution` if results do not depend on the
/// setting, `addition` if it was added later and changes nothing at its default, `length` if a greater value only makes a run
/// longer.
///
/// `when OTHER is ["WORD"]` after a shape means that the setting has an effect only if another setting has one of these
/// values, `when OTHER not ["0"]` only if it has a different one. Several conditions are joined by `and`; `when OTHER is
/// (words())` computes the values. If a file gives the setting where it has no effect, a note says so.
///
/// After these, `follows` says which values follow from others where a file leaves a setting open.
///
/// After `follows`, `rare(slice)` leaves settings out of the short file of `evoxo new` where they have their
/// defaults.
///
/// After these, `includes(own: OTHERS, before slice, chosen by side)` includes the settings of the schema
/// `OTHERS`, before the schema's own setting `slice`; `side` chooses which of them apply. Their values are in the struct's
/// field `own`, and `Name::own(NAME)` names one of them.
///
/// [`Schema::check`]: crate::settings::Schema::check
#[macro_export]
macro_rules! settings {
    (
        $(#[doc = $summary:literal])+
        $vis:vis struct $settings:ident, names $name:ident, schema $schema:ident {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty = $($shape:ident)+ ( $($argument:expr),* )
                $( when $( $other:ident $is:ident $words:tt ) and + )? ),+ $(,)?
        }
        $(check($check:expr))?
        $(notes($notes:expr))?
        $(follows($follows:expr))?
        $(rare($($rare:ident),+ $(,)?))?
        $(includes($included:ident: $others:expr, before $before:ident, chosen by $chooser:ident))?
    ) => {
        $(#[doc = $summary])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $settings {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            $(
                #[doc = concat!("Settings that [`", stringify!($chooser), "`](Self::", stringify!($chooser), ") chooses among.")]
                pub $included: $crate::settings::Values,
            )?
        }

        /// The names of the settings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, non_camel_case_types, missing_docs, reason = "variants are named like fields, for checks that name them")]
        $vis enum $name { $( $field, )+ $( $included(&'static str), )? }

        /// The settings as data.
        $vis static $schema: $crate::settings::Schema = $crate::settings::Schema {
            summary: concat!($($summary),+),
            fields: || {
                static FIELDS: std::sync::LazyLock<Vec<$crate::settings::Field>> = std::sync::LazyLock::new(|| {
                    #[allow(unused_mut, reason = "settings of another schema may come between")]
                    let mut fields = vec![ $( $crate::settings::Field {
                        applies: vec![ $( $( $crate::settings::Condition {
                            setting: $name::$other.text(),
                            is: $crate::settings!(@is $is),
                            values: $crate::settings!(@words $words),
                        } ),+ )? ],
                        ..$crate::settings!(@field $type, $crate::settings::field_name(stringify!($field)), concat!($($doc),+), $($shape)+ ($($argument),*))
                    }, )+ ];
                    $(
                        let place = fields.iter().position(|field| field.name == $name::$before.text());
                        let place = place.expect("a setting of the struct");
                        fields.splice(place..place, $others.fields().iter().cloned());
                    )?
                    fields
                });
                &FIELDS
            },
            rare: &[ $( $( $name::$rare.text() ),+ )? ],
            chooser: { let chooser: &[&str] = &[ $( $name::$chooser.text() )? ]; chooser.first().copied() },
            check: |values| {
                let checks: &[fn(&$settings) -> Vec<($name, String)>] = &[$($check)?];
                let problems = checks.iter().flat_map(|check| check(&$settings::of(values)));
                problems.map(|problem| (problem.0.text(), problem.1)).collect()
            },
            notes: |values| {
                let notes: &[fn(&$settings) -> Vec<String>] = &[$($notes)?];
                notes.iter().flat_map(|notes| notes(&$settings::of(values))).collect()
            },
            follows: |values| {
                let follows: &[fn(&$settings) -> Vec<$crate::settings::Follows>] = &[$($follows)?];
                follows.iter().flat_map(|follows| follows(&$settings::of(values))).collect()
            },
        };

        impl $settings {
            /// The typed form of values of the schema, or of a schema that includes its settings.
            ///
            /// # Panics
            /// If the values are of another schema.
            #[must_use]
            $vis fn of(values: &$crate::settings::Values) -> Self {
                const NAMES: &[&str] = &[ $( $name::$field.text() ),+ ];
                let mut own = values.named(NAMES);
                Self {
                    $( $field: $crate::settings::FromValue::from_value(
                        own.next().expect("there is a value for each field")
                    ), )+
                    $( $included: values.part(&$others), )?
                }
            }
        }

        impl $crate::settings::Typed for $settings {
            const SCHEMA: &'static $crate::settings::Schema = &$schema;

            fn of(values: &$crate::settings::Values) -> Self {
                Self::of(values)
            }
        }

        impl $name {
            /// The name in experiment files.
            #[must_use]
            $vis const fn text(self) -> &'static str {
                match self {
                    $( Self::$field => $crate::settings::field_name(stringify!($field)), )+
                    $( Self::$included(name) => name, )?
                }
            }

            /// The setting with this name in experiment files.
            #[must_use]
            #[allow(dead_code, reason = "for checks of parts that do not know the settings")]
            $vis fn named(text: &str) -> Option<Self> {
                match text {
                    $( text if text == Self::$field.text() => Some(Self::$field), )+
                    _ => None,
                }
            }
        }
    };
    (@field $type:ty, $name:expr, $doc:expr, execution $shape:ident $arguments:tt) => {
        $crate::settings::Field {
            scope: $crate::settings::Scope::Execution,
            ..$crate::settings!(@field $type, $name, $doc, $shape $arguments)
        }
    };
    (@field $type:ty, $name:expr, $doc:expr, addition $shape:ident $arguments:tt) => {
        $crate::settings::Field {
            scope: $crate::settings::Scope::Addition,
            ..$crate::settings!(@field $type, $name, $doc, $shape $arguments)
        }
    };
    (@field $type:ty, $name:expr, $doc:expr, length $shape:ident $arguments:tt) => {
        $crate::settings::Field {
            scope: $crate::settings::Scope::Length,
            ..$crate::settings!(@field $type, $name, $doc, $shape $arguments)
        }
    };
    (@field $type:ty, $name:expr, $doc:expr, $shape:ident $arguments:tt) => {
        $crate::settings::Field {
            name: $name,
            doc: $doc,
            shape: $crate::settings!(@shape $type, $shape $arguments),
            default: $crate::settings!(@default $shape $arguments),
            scope: $crate::settings::Scope::Semantic,
            applies: Vec::new(),
        }
    };
    (@is is) => { true };
    (@is not) => { false };
    (@words [ $($word:literal),+ ]) => { vec![ $($word),+ ] };
    (@words ( $words:expr )) => { $words };
    (@shape $type:ty, whole($min:expr, $max:expr, $default:expr)) => {
        $crate::settings::Shape::Integer { min: $min, max: $max }
    };
    (@shape $type:ty, signed($min:expr, $max:expr, $default:expr)) => {
        $crate::settings::Shape::Signed { min: $min, max: $max }
    };
    (@shape $type:ty, decimal($min:expr, $max:expr, $default:expr)) => {
        $crate::settings::Shape::Decimal { min: $min, max: $max, places: $crate::settings::PLACES_EXACT }
    };
    (@shape $type:ty, real($min:expr, $max:expr, $default:expr)) => {
        $crate::settings::Shape::Decimal { min: $min, max: $max, places: $crate::settings::PLACES_FLOAT }
    };
    (@shape $type:ty, choice($default:expr)) => {
        $crate::settings::Shape::Choice(<$type as $crate::settings::Choice>::choices())
    };
    (@shape $type:ty, text($bytes_max:expr, $default:expr)) => {
        $crate::settings::Shape::Text { bytes_max: $bytes_max }
    };
    (@shape $type:ty, numbers($count_max:expr, $min:expr, $max:expr, $default:expr)) => {
        $crate::settings::Shape::Numbers {
            count_max: $count_max,
            min: $min,
            max: $max,
            places: $crate::settings::PLACES_FLOAT,
        }
    };
    (@shape $type:ty, list($schema:expr, $count_max:expr, $default:expr)) => {
        $crate::settings::Shape::List { schema: &$schema, count_max: $count_max }
    };
    (@default choice($default:expr)) => { $default };
    (@default text($bytes_max:expr, $default:expr)) => { $default };
    (@default numbers($count_max:expr, $min:expr, $max:expr, $default:expr)) => { $default };
    (@default $shape:ident($min:expr, $max:expr, $default:expr)) => { $default };
}

/// Declares a setting that is one of several words: an enum, in which each variant's documentation gives its word's meaning.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])+
        $vis:vis enum $choice:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $choice {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl $crate::settings::Choice for $choice {
            fn choices() -> &'static [(&'static str, &'static str)] {
                &[ $( ($word, concat!($($doc),+)), )+ ]
            }

            fn of(word: &str) -> Self {
                match word {
                    $( $word => Self::$variant, )+
                    other => panic!("the choice {other:?} was not declared"),
                }
            }

            fn word(&self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{ratio::Ratio, settings::Choice as _};

    choice! {
        /// Colours.
        enum Colour {
            /// like
            /// grass
            Green = "green",
            /// like the sky
            Blue = "blue",
        }
    }

    settings! {
        /// A tree.
        struct Tree, names Branch, schema TREE {
            /// Colour.
            colour: Colour = choice("blue"),
            /// Leaves, if green.
            leaves: u32 = whole(0, 9, "0") when colour is ["green"],
            /// Worms in leaves.
            worms: u32 = whole(0, 9, "0") when leaves not ["0"] and size is ["1", "2"],
            /// Size.
            size: u32 = execution whole(1, 9, "1"),
        }
        check(|_| Vec::new())
    }

    #[test]
    fn settings_say_where_they_have_an_effect() {
        let idle = |text: &str, name: &str| TREE.read(text).unwrap().idle(name);
        assert_eq!(idle("leaves = 3", "leaves").as_deref(), Some("colour = \"blue\""));
        assert_eq!(
            idle("leaves = 3", "worms").as_deref(),
            Some("colour = \"blue\""),
            "a setting that depends on it has no effect either"
        );
        assert_eq!(idle("colour = \"green\"", "worms").as_deref(), Some("leaves = 0"));
        assert_eq!(idle("colour = \"green\"\nleaves = 1\nsize = 3", "worms").as_deref(), Some("size = 3"));
        assert_eq!(idle("colour = \"green\"\nleaves = 1\nsize = 2", "worms"), None);
        assert_eq!((idle("", "size"), Branch::named("x")), (None, None));
    }

    settings! {
        /// What only green trees have.
        struct Green, names GreenName, schema GREEN {
            /// Needles.
            needles: u32 = whole(0, 9, "3"),
        }
    }

    settings! {
        /// A tree of two files.
        struct Both, names BothName, schema BOTH {
            /// Colour.
            colour: Colour = choice("blue"),
            /// Height, if blue.
            height: u32 = whole(0, 9, "1") when colour is (vec!["blue"]),
            /// Size.
            size: u32 = whole(1, 9, "1"),
        }
        check(|tree| match tree.size {
            9 => vec![(BothName::own("needles"), "too many".into())],
            _ => Vec::new(),
        })
        includes(own: GREEN, before size, chosen by colour)
    }

    #[test]
    fn a_schema_includes_the_settings_of_another() {
        let values = BOTH.read("needles = 5\ncolour = \"green\"").unwrap();
        let names: Vec<&str> = BOTH.fields().iter().map(|field| field.name).collect();
        assert_eq!(names, ["colour", "height", "needles", "size"]);
        assert_eq!((Green::of(&Both::of(&values).own).needles, Green::of(&values).needles), (5, 5));
        let chosen: Vec<bool> = BOTH.fields().iter().map(|field| values.is_chosen(field)).collect();
        assert_eq!(chosen, [true, false, true, true], "the height applies to the colour blue");
        assert_eq!((BOTH.check)(&values.with("size", "9")), [("needles", "too many".to_owned())]);
        assert_eq!(values.set("needle", "1"), Err("unknown setting \"needle\"; did you mean \"needles\"?".into()));
    }

    #[test]
    #[should_panic(expected = "there is no setting needles")]
    fn values_of_another_schema_are_rejected() {
        let _ = Green::of(&TREE.defaults());
    }

    settings! {
        /// Every shape
        /// there is.
        struct Settings, names Name, schema SCHEMA {
            /// Whole.
            whole: usize = whole(1, 9, "3"),
            /// Signed.
            signed: i32 = signed(-5, 5, "-2"),
            /// Decimal.
            decimal: Ratio = decimal(-1, 1, "0.25"),
            /// A colour.
            colour: Colour = choice("blue"),
            /// A text.
            text: String = text(8, "a b"),
            /// Numbers.
            numbers: Vec<Ratio> = numbers(3, 0, 10, "1, 2.5"),
            /// Not semantic.
            slice: u32 = execution whole(0, 9, "0"),
            /// Came later.
            later: Ratio = addition decimal(0, 9, "0.50"),
        }
        check(|settings| if settings.whole == 7 { vec![(Name::whole, "not 7".into())] } else { Vec::new() })
    }

    #[test]
    fn both_forms_are_equal() {
        let values = SCHEMA.defaults();
        let settings = Settings::of(&values);
        assert_eq!((settings.whole, settings.signed, settings.decimal), (3, -2, Ratio::new(1, 4)));
        assert_eq!((settings.colour, settings.text.as_str(), settings.slice), (Colour::Blue, "a b", 0));
        assert_eq!(settings.numbers, [Ratio::ONE, Ratio::new(5, 2)]);
        assert_eq!(
            [Colour::Green, Colour::Blue].map(|colour| Colour::of(colour.word())),
            [Colour::Green, Colour::Blue]
        );
        let written: Vec<String> =
            values.iter().map(|(field, value)| format!("{} = {value} ({:?})", field.name, field.scope)).collect();
        insta::assert_snapshot!(written.join("\n"));
        let fields = SCHEMA.fields();
        assert!(fields.iter().all(|field| field.shape.read(field.default).is_ok()));
        assert_eq!((SCHEMA.check)(&values), []);
        assert!(fields.iter().all(|field| Name::named(field.name).map(|name| name.text()) == Some(field.name)));
        assert_eq!(Name::named("other"), None);
    }

    /// Additions are written only if they differ from their defaults, so names of runs and of tasks stay the same.
    #[test]
    fn additions_are_omitted_at_their_default() {
        let values = SCHEMA.defaults();
        let before = values.to_text();
        assert!(before.ends_with("numbers = [1, 2.5]\n"), "{before}");
        assert_eq!(SCHEMA.read(&(before.clone() + "later = 0.5\n")).unwrap().to_text(), before);
        let values = values.with("later", "1");
        assert_eq!(values.to_text(), before + "later = 1\n");
        assert_eq!(SCHEMA.read(&values.to_text()), Ok(values));
    }

    /// Quotes and backslashes of a text are the same after writing and reading.
    #[test]
    fn texts_may_have_quotes_and_backslashes() {
        for text in ["a\"\\b\\", "\"", "\\\"", "\"a\"", ""] {
            let values = SCHEMA.defaults().with("text", text);
            assert_eq!(values.named(&["text"]).next().unwrap().bare(), text);
            assert_eq!(SCHEMA.read(&values.to_text()), Ok(values));
        }
    }

    /// A limit of 13 digits is itself allowed, and no text leads to a fraction that is too large.
    #[test]
    fn decimals_have_as_many_digits_as_their_limits() {
        let shape =
            |places| crate::settings::Shape::Decimal { min: -1_000_000_000_000, max: 1_000_000_000_000, places };
        let (shape, float) = (shape(crate::settings::PLACES_EXACT), shape(crate::settings::PLACES_FLOAT));
        for good in ["1000000000000", "-1000000000000", "1000000000000.000000", "999999999999.999999"] {
            assert!(shape.read(good).is_ok(), "{good}");
        }
        // As TOML and other programs write them.
        for (same, plain) in
            [("1e3", "1000"), ("-6.5e-1", "-0.65"), ("+1.25E+02", "125"), ("5.e0", "5"), ("1e-6", "0.000001")]
        {
            assert_eq!(shape.read(same), shape.read(plain), "{same}");
        }
        for wrong in ["1e-7", "1e13", "1e99999999999", "e3", ".5e1", "1e", "--1", "-+1", "1e2.5"] {
            assert!(shape.read(wrong).is_err(), "{wrong}");
        }
        // As numpy prints floats: read exactly, written back as the same text, and equal to the same float.
        for text in [
            "0.1",
            "0.30000000000000004",
            "1e-18",
            "-123456.12345678901",
            "0.017453292519943295",
            "3.3333333333333335e+11",
        ] {
            let value = float.read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(float.read(&value.to_string()), Ok(value.clone()), "{text}");
            let crate::settings::Value::Decimal(value) = value else { panic!("a decimal") };
            assert_eq!(value.to_f64(), text.parse::<f64>().unwrap(), "{text}");
        }
        for wrong in ["1e-19", "123456789012.123456789", "9223372036854775807.1"] {
            assert!(float.read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["1000000000000.000001", "9999999999999.999999", "-9999999999999", "10000000000000"] {
            assert!(shape.read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn problems_name_their_field() {
        let values = SCHEMA.defaults().with("whole", "7");
        assert_eq!((SCHEMA.check)(&values), [("whole", "not 7".to_owned())]);
        assert!(matches!(Name::whole.text(), "whole"));
    }
}
