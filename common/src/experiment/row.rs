//! The rows of a history: typed structs for the code of a kind, and columns with names and docs for all other code.

/// A column of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in the header of `history.csv`.
    pub name: &'static str,
    /// Its meaning, and its unit.
    pub doc: &'static str,
}

/// A row of a history. [`row!`](crate::row!) declares such rows.
pub trait Row {
    /// The columns.
    const COLUMNS: &'static [Column];
    /// The index of the primary metric. It is shown while a run is computed, and replicas are compared by it.
    const PRIMARY: usize;

    /// One value for each column.
    fn values(&self) -> Vec<f64>;

    /// The name of the column with this index.
    #[must_use]
    fn name(column: usize) -> &'static str {
        Self::COLUMNS[column].name
    }
}

/// A type that a field of a row can have.
pub trait Number {
    /// The number in the history. Whole numbers are exact below 2^53.
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn number(self) -> f64 {
                self as f64
            }
        }
    )*};
}
numbers!(f64, u32, i32, u64, i64, usize);

/// Declares the rows of a kind's history: a struct whose fields are the columns, in this order, and the index of each column
/// as a constant with the field's name. The documentation of a field becomes that of the column.
///
/// ```
/// use evoxo_common::{experiment::Row as _, row};
///
/// row! {
///     /// A row is a generation.
///     struct Row, primary best {
///         /// generations completed
///         generation: u32,
///         /// fitness of the fittest
///         best: f64,
///     }
/// }
///
/// let history = [Row { generation: 1, best: 0.5 }, Row { generation: 2, best: 0.75 }].map(|row| row.values());
/// assert_eq!((Row::best, Row::PRIMARY, Row::COLUMNS[Row::best].doc), (1, 1, "fitness of the fittest"));
/// assert_eq!(history.map(|row| row[Row::best]), [0.5, 0.75]);
/// ```
#[macro_export]
macro_rules! row {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $row:ident, primary $primary:ident {
            $( $(#[doc = $doc:literal])+ $column:ident : $type:ty ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $row { $( $(#[doc = $doc])+ $vis $column: $type, )+ }

        const _: () = {
            #[allow(non_camel_case_types, reason = "variants are named like fields; their order gives each field its index")]
            enum Index { $( $column, )+ }

            #[allow(dead_code, non_upper_case_globals, reason = "constants are named like fields, for code that reads columns")]
            impl $row {
                $( $(#[doc = $doc])+ $vis const $column: usize = Index::$column as usize; )+
            }

            impl $crate::experiment::Row for $row {
                const COLUMNS: &'static [$crate::experiment::Column] = &[
                    $( $crate::experiment::Column {
                        name: stringify!($column),
                        doc: concat!($($doc),+).trim_ascii(),
                    }, )+
                ];
                const PRIMARY: usize = Self::$primary;

                fn values(&self) -> Vec<f64> {
                    vec![ $( $crate::experiment::Number::number(self.$column), )+ ]
                }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    row! {
        /// Every type that a field can have.
        struct Every, primary small {
            /// a long
            /// sentence
            large: u64,
            /// signed
            small: i32,
            /// counted
            count: usize,
        }
    }

    #[test]
    fn a_row_has_its_columns_in_the_order_of_its_fields() {
        let row = Every { large: 1 << 52, small: -1, count: 3 };
        assert_eq!(row.values(), [(1_u64 << 52) as f64, -1.0, 3.0]);
        assert_eq!([Every::large, Every::small, Every::count, Every::PRIMARY], [0, 1, 2, 1]);
        assert_eq!(Every::COLUMNS[0], Column { name: "large", doc: "a long sentence" });
    }
}
