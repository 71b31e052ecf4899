//! Networks with lanes written out, for each instruction set: as [`fearless_simd`] has them. There the compiler sees too little
//! by itself of what can be done side by side (docs/decisions/0009).

/// Does `$body` with the best instruction set allowed, of which `$simd` is the token. What it calls should be
/// `#[inline(always)]` all the way down: what is not is compiled for the baseline and calls every instruction.
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
/// Does `$body` with the instruction set of the target, of which `$simd` is the token.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! dispatch {
    ($simd:ident => $body:expr) => {
        fearless_simd::dispatch!(fearless_simd::Level::new(), $simd => $body)
    };
}
pub(crate) use dispatch;
