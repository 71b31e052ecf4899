//! One source, several instruction sets, the same bits.
//!
//! A kernel wrapped in `kernel!` is compiled for the baseline of the target (SSE2 on x86-64, NEON on ARM64), and on x86-64
//! also for AVX2 and for AVX-512; the copy to run is chosen at run time. The compiler vectorises it. The bits agree because
//! lanes are outputs, sums have a fixed order and the compiler fuses no operations. The behaviour signature and the tests
//! check this.

use std::sync::atomic::{AtomicU8, Ordering};

/// The most advanced instructions that kernels in this process may use. Only x86-64 has several levels; elsewhere, each of
/// them is the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Instructions that every machine of the target has (SSE2 on x86-64, NEON on ARM64).
    Baseline = 0,
    /// Up to AVX2, if the machine has it.
    Avx2 = 1,
    /// The best instructions that the machine has.
    Best = 2,
}

/// A process-wide setting is harmless, because results do not depend on it. It exists for tests and for `--simd`.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Best as u8);

/// Sets the level for the whole process.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The level in use.
#[must_use]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        0 => Level::Baseline,
        1 => Level::Avx2,
        _ => Level::Best,
    }
}

/// Runs a function at each level, for tests. All tests of a process share the level, so only one of them may do this at a
/// time.
pub fn at_each_level<T>(mut act: impl FnMut(Level) -> T) -> [T; 3] {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    [Level::Baseline, Level::Avx2, Level::Best].map(|level| {
        set_level(level);
        act(level)
    })
}

/// Defines a function that is compiled once for each instruction set: `kernel! { /// docs  pub fn name(args) -> T { body }
/// }`. It may have type parameters, each with one bound. A crate that uses it needs the dependency `multiversion`.
#[macro_export]
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)? ($($arg:ident: $type:ty),* $(,)?)
     $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name $(<$($generic: $bound),+>)? ($($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($generic: $bound),+>)? ($($arg: $type),*) $(-> $ret)? $body
            #[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
            fn avx2 $(<$($generic: $bound),+>)? ($($arg: $type),*) $(-> $ret)? { body($($arg),*) }
            #[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+bmi2", "x86_64+avx2+bmi2"))]
            fn best $(<$($generic: $bound),+>)? ($($arg: $type),*) $(-> $ret)? { body($($arg),*) }
            match $crate::simd::level() {
                $crate::simd::Level::Baseline => body($($arg),*),
                $crate::simd::Level::Avx2 => avx2($($arg),*),
                $crate::simd::Level::Best => best($($arg),*),
            }
        }
    };
}
