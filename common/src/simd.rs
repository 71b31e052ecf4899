//! One source, several instruction sets, the same bits.
//!
//! A kernel wrapped in `kernel!` is compiled for the baseline of the target (SSE2 on x86-64), for AVX2 and for AVX-512;
//! which copy runs is chosen at run time. There the compiler finds by itself what can be done side by side. Where it does not
//! see that well enough, in networks that learn, lanes are written out as [`fearless_simd`] has them, and `dispatch!` chooses.
//! The bits agree because lanes are outputs, sums have a fixed order and nothing is fused; the behaviour signature and the
//! tests compare them.

use std::sync::atomic::{AtomicU8, Ordering};

/// How far the kernels of this process may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What every machine of the target has (SSE2 on x86-64).
    Baseline = 0,
    /// Up to AVX2, where the machine has it.
    Avx2 = 1,
    /// The best the machine has.
    Best = 2,
}

/// Never part of a result, so a process-wide setting is harmless: it exists for tests and for `--simd`.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Best as u8);

/// Sets the level for the whole process.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The level in force.
#[must_use]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        0 => Level::Baseline,
        1 => Level::Avx2,
        _ => Level::Best,
    }
}

/// Does something at each level. All tests of a process share one level, so one of them at a time may do that.
#[cfg(test)]
pub(crate) fn at_each_level<T>(mut act: impl FnMut(Level) -> T) -> [T; 3] {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    [Level::Baseline, Level::Avx2, Level::Best].map(|level| {
        set_level(level);
        act(level)
    })
}

/// Defines a function that is compiled once per instruction set: `kernel! { /// docs  pub fn name(args) -> T { body } }`.
/// It may have type parameters, each with one bound.
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
pub(crate) use kernel;

/// Does `$body` with the best instruction set allowed, of which `$simd` is the token. What it calls should be
/// `#[inline(always)]` all the way down: what is not is compiled for the baseline and calls every instruction.
#[cfg(target_arch = "x86_64")]
macro_rules! dispatch {
    ($simd:ident => $body:expr) => {{
        use $crate::simd::Level;
        let (best, level) = (fearless_simd::Level::new(), $crate::simd::level());
        if let (Level::Best, Some($simd)) = (level, best.as_avx512()) {
            fearless_simd::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $body,
            )
        } else if let (Level::Best | Level::Avx2, Some($simd)) = (level, best.as_avx2()) {
            fearless_simd::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $body,
            )
        } else {
            let $simd = best.as_sse2().expect("every x86-64 has SSE2");
            fearless_simd::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $body,
            )
        }
    }};
}
/// Does `$body` with the instruction set of the target, of which `$simd` is the token.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! dispatch {
    ($simd:ident => $body:expr) => {
        fearless_simd::dispatch!(fearless_simd::Level::new(), $simd => $body)
    };
}
pub(crate) use dispatch;
