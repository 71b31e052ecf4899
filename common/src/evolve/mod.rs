//! Evolution operators for all experiments: selection, elitism, crossover, mutation.
//!
//! Sources: A. E. Eiben and J. E. Smith, *Introduction to Evolutionary Computing*, 2nd ed. 2015 (chapters 4 and 5); D. E.
//! Goldberg, *Genetic Algorithms in Search, Optimization and Machine Learning*, 1989. Each function names its source.
//! Randomness comes from the caller's named stream; ties always go to the lower index.

pub mod cross;
pub mod integer;
pub mod mutate;
pub mod order;
pub mod real;
pub mod select;
