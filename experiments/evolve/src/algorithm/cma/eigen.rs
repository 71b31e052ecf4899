//! Eigenvalues and eigenvectors of symmetric matrices, computed from + - * / and square roots only.

/// The largest absolute entry that is accepted: with larger ones, products of entries could overflow.
const ENTRY_MAX: f64 = 1e140;
/// The most QL steps for one eigenvalue; two are usual.
const STEPS_MAX: usize = 60;

/// The eigenvalues of a symmetric matrix of `n` rows, in no particular order, and the matching unit eigenvectors, one after
/// another. Only the lower triangle is read: entry (i, j) with i >= j is at `j * n + i`. `None` if an entry is not finite or
/// above 1e140, or if the eigenvalues do not converge.
///
/// Reduction to a tridiagonal matrix by Householder reflections, then QL steps with implicit shifts: procedures tred2 and
/// tql2 of R. S. Martin, C. Reinsch and J. H. Wilkinson, Numerische Mathematik 11, 1968, as in EISPACK.
pub(super) fn symmetric(matrix: &[f64], n: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    assert_eq!(matrix.len(), n * n, "a square matrix");
    let mut vectors = matrix.to_vec();
    for column in 0..n {
        for row in column..n {
            let entry = matrix[column * n + row];
            if entry.is_nan() || entry.abs() > ENTRY_MAX {
                return None;
            }
            vectors[row * n + column] = entry;
        }
    }
    let (mut values, mut beside) = (vec![0.0; n], vec![0.0; n]);
    reduce(&mut vectors, &mut values, &mut beside, n);
    accumulate(&mut vectors, &mut values, n);
    diagonalise(&mut vectors, &mut values, &mut beside, n)?;
    let finite = values.iter().chain(&vectors).all(|value| value.is_finite());
    finite.then_some((values, vectors))
}

/// Householder reflections: leaves the off-diagonal of the tridiagonal matrix in `e`, and what [`accumulate`] needs in `v`
/// and `d`.
fn reduce(v: &mut [f64], d: &mut [f64], e: &mut [f64], n: usize) {
    for j in 0..n {
        d[j] = v[j * n + n - 1];
    }
    for i in (1..n).rev() {
        let scale: f64 = d[..i].iter().map(|entry| entry.abs()).sum();
        let mut h = 0.0;
        if scale == 0.0 {
            e[i] = d[i - 1];
            for j in 0..i {
                d[j] = v[j * n + i - 1];
                v[j * n + i] = 0.0;
                v[i * n + j] = 0.0;
            }
        } else {
            for entry in &mut d[..i] {
                *entry /= scale;
                h += *entry * *entry;
            }
            let f = d[i - 1];
            let g = if f > 0.0 { -h.sqrt() } else { h.sqrt() };
            e[i] = scale * g;
            h -= f * g;
            d[i - 1] = f - g;
            e[..i].fill(0.0);
            for j in 0..i {
                let f = d[j];
                v[i * n + j] = f;
                let mut g = e[j] + v[j * n + j] * f;
                for k in j + 1..i {
                    g += v[j * n + k] * d[k];
                    e[k] += v[j * n + k] * f;
                }
                e[j] = g;
            }
            let mut f = 0.0;
            for j in 0..i {
                e[j] /= h;
                f += e[j] * d[j];
            }
            let half = f / (h + h);
            for j in 0..i {
                e[j] -= half * d[j];
            }
            for j in 0..i {
                let (f, g) = (d[j], e[j]);
                for k in j..i {
                    v[j * n + k] -= f * e[k] + g * d[k];
                }
                d[j] = v[j * n + i - 1];
                v[j * n + i] = 0.0;
            }
        }
        d[i] = h;
    }
}

/// Multiplies the reflections, and leaves the diagonal of the tridiagonal matrix in `d`.
fn accumulate(v: &mut [f64], d: &mut [f64], n: usize) {
    for i in 0..n.saturating_sub(1) {
        v[i * n + n - 1] = v[i * n + i];
        v[i * n + i] = 1.0;
        let h = d[i + 1];
        if h != 0.0 {
            for k in 0..=i {
                d[k] = v[(i + 1) * n + k] / h;
            }
            for j in 0..=i {
                let mut g = 0.0;
                for k in 0..=i {
                    g += v[(i + 1) * n + k] * v[j * n + k];
                }
                for k in 0..=i {
                    v[j * n + k] -= g * d[k];
                }
            }
        }
        v[(i + 1) * n..(i + 1) * n + i + 1].fill(0.0);
    }
    for j in 0..n {
        d[j] = v[j * n + n - 1];
        v[j * n + n - 1] = 0.0;
    }
    v[n * n - 1] = 1.0;
}

/// Takes QL steps until the off-diagonal entries vanish.
fn diagonalise(v: &mut [f64], d: &mut [f64], e: &mut [f64], n: usize) -> Option<()> {
    e.rotate_left(1);
    e[n - 1] = 0.0;
    let (mut shift, mut size) = (0.0, 0.0_f64);
    for l in 0..n {
        size = size.max(d[l].abs() + e[l].abs());
        let small = |entry: f64| entry.abs() <= f64::EPSILON * size;
        let m = (l..n - 1).find(|m| small(e[*m])).unwrap_or(n - 1);
        let mut steps = 0;
        while m > l && (steps == 0 || !small(e[l])) {
            if steps == STEPS_MAX {
                return None;
            }
            steps += 1;
            shift += implicit_shift(d, e, l, n);
            rotate(v, d, e, (l, m), n);
        }
        d[l] += shift;
        e[l] = 0.0;
    }
    Some(())
}

/// Shifts the diagonal from `l` on, to speed up convergence. Returns the shift.
fn implicit_shift(d: &mut [f64], e: &[f64], l: usize, n: usize) -> f64 {
    let g = d[l];
    let p = (d[l + 1] - g) / (2.0 * e[l]);
    let r = if p < 0.0 { -(p * p + 1.0).sqrt() } else { (p * p + 1.0).sqrt() };
    d[l] = e[l] / (p + r);
    d[l + 1] = e[l] * (p + r);
    let h = g - d[l];
    d[l + 2..n].iter_mut().for_each(|entry| *entry -= h);
    h
}

/// One QL step of the block from `l` to `m`.
fn rotate(v: &mut [f64], d: &mut [f64], e: &mut [f64], (l, m): (usize, usize), n: usize) {
    let (next, beside) = (d[l + 1], e[l + 1]);
    let mut p = d[m];
    let (mut c, mut c2, mut c3) = (1.0, 1.0, 1.0);
    let (mut s, mut s2) = (0.0, 0.0);
    for i in (l..m).rev() {
        (c3, c2, s2) = (c2, c, s);
        let g = c * e[i];
        let h = c * p;
        let r = (p * p + e[i] * e[i]).sqrt();
        e[i + 1] = s * r;
        s = e[i] / r;
        c = p / r;
        p = c * d[i] - s * g;
        d[i + 1] = h + s * (c * g + s * d[i]);
        let (low, high) = v[i * n..(i + 2) * n].split_at_mut(n);
        for (low, high) in low.iter_mut().zip(high) {
            let h = *high;
            *high = s * *low + c * h;
            *low = c * *low - s * h;
        }
    }
    let p = -s * s2 * c3 * beside * e[l] / next;
    e[l] = s * p;
    d[l] = c * p;
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::{Stream, unit};
    use proptest::prelude::*;

    /// The largest entry of A V - V D and of V'V - 1, with the largest eigenvalue for comparison.
    fn errors(matrix: &[f64], n: usize) -> (f64, f64, f64) {
        let (values, vectors) = symmetric(matrix, n).unwrap();
        let entry = |i: usize, j: usize| matrix[i.min(j) * n + i.max(j)];
        let (mut wrong, mut skew) = (0.0_f64, 0.0_f64);
        for (column, value) in vectors.chunks(n).zip(&values) {
            for i in 0..n {
                let product: f64 = (0..n).map(|j| entry(i, j) * column[j]).sum();
                wrong = wrong.max((product - value * column[i]).abs());
            }
        }
        for (one, first) in vectors.chunks(n).enumerate() {
            for (two, second) in vectors.chunks(n).enumerate() {
                let product: f64 = first.iter().zip(second).map(|(x, y)| x * y).sum();
                skew = skew.max((product - f64::from(u8::from(one == two))).abs());
            }
        }
        (wrong, skew, values.iter().fold(0.0, |most: f64, value| most.max(value.abs())))
    }

    proptest! {
        #[test]
        fn the_matrix_only_scales_its_eigenvectors(seed: u64, n in 1..25_usize, zeros in 0.0..1.0_f64) {
            let mut rng = Stream::root(seed).rng();
            let mut draw = || if unit(&mut rng) < zeros { 0.0 } else { unit(&mut rng) - 0.5 };
            let matrix: Vec<f64> = (0..n * n).map(|_| draw()).collect();
            let (wrong, skew, size) = errors(&matrix, n);
            prop_assert!(wrong <= 1e-13 * size.max(1e-300) * n as f64 && skew < 1e-13 * n as f64, "{wrong} {skew}");
        }
    }

    #[test]
    fn known_matrices() {
        let sorted = |matrix: &[f64], n| {
            let (mut values, _) = symmetric(matrix, n).unwrap();
            values.sort_by(f64::total_cmp);
            values
        };
        assert_eq!(sorted(&[7.0], 1), [7.0]);
        assert_eq!(sorted(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 3), [1.0; 3]);
        assert_eq!(sorted(&[0.0; 16], 4), [0.0; 4]);
        let [one, three] = sorted(&[2.0, 1.0, f64::NAN, 2.0], 2)[..] else { panic!("two eigenvalues") };
        assert!((one - 1.0).abs() < 1e-15 && (three - 3.0).abs() < 1e-15, "{one} {three}");
        // Second differences: 2 - 2 cos(k pi / (n + 1)).
        let n = 30;
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            matrix[i * n + i] = 2.0;
            if i + 1 < n {
                matrix[i * n + i + 1] = -1.0;
            }
        }
        for (k, value) in sorted(&matrix, n).iter().enumerate() {
            let angle = std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64;
            assert!((value - (2.0 - 2.0 * evoxo_common::math::cos(angle))).abs() < 1e-14, "{k}: {value}");
        }
    }

    #[test]
    fn matrices_without_a_decomposition_are_rejected() {
        for entry in [f64::NAN, f64::INFINITY, -1e200] {
            assert_eq!(symmetric(&[1.0, entry, 0.0, 1.0], 2), None);
        }
    }
}
