//! Compiles the explicitly vectorised networks for each instruction set of [`fearless_simd`]. They are vectorised explicitly
//! because the compiler does not find enough parallelism in them on its own
//! (docs/decisions/one-source-for-all-instruction-sets.md).

/// Runs `$body` with the best allowed instruction set; `$simd` is its token. All functions that it calls, directly or not,
/// should be `#[inline(always)]`. Others are compiled for the baseline, where each vector operation is a function call.
#[cfg(target_arch = "x86_64")]
macro_rules! dispatch {
    ($simd:ident => $body:expr) => {{
        use evoxo_common::simd::Level;
        let (best, level) = (fearless_simd::Level::new(), evoxo_common::simd::level());
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
/// Runs `$body` with the instruction set of the target; `$simd` is its token.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! dispatch {
    ($simd:ident => $body:expr) => {
        fearless_simd::dispatch!(fearless_simd::Level::new(), $simd => $body)
    };
}
pub(crate) use dispatch;
