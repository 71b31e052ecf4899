//! Packs: the objects of finished replicas. Replicas that end together are stored together, because creating an object takes
//! much longer than writing a small replica. A pack is one or more sealed replicas one after the other and nothing else, so each
//! can be read and checked alone.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use evoxo_common::envelope::{Damage, Kind, length, mark, open};

/// Where a finished replica is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackPlace {
    /// The name of the pack below `runs/RUN/`. If the replica was read from the copy, this is still the name of the original.
    pub object: Arc<str>,
    /// Where the replica begins in the pack.
    pub offset: u64,
    /// The replica's bytes, sealed.
    pub bytes: u64,
    /// See [`mark`]. It tells the replica from another one that a wrong object has at this place.
    pub mark: u64,
}

impl PackPlace {
    /// The bytes of the pack that are the replica.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.bytes)
    }

    /// Whether these bytes, read from this place, are the replica.
    #[must_use]
    pub fn is_of(&self, sealed: &Bytes) -> bool {
        mark(sealed) == Some(self.mark) && open(Kind::Finished, sealed).is_ok()
    }
}

/// A pack of these sealed replicas.
#[must_use]
pub fn pack(replicas: &[Bytes]) -> Bytes {
    match replicas {
        // A large replica is alone, and is not copied.
        [one] => one.clone(),
        several => several.concat().into(),
    }
}

/// The places of these sealed replicas in the pack that has them in this order.
#[must_use]
pub fn places(object: &str, replicas: &[Bytes]) -> Vec<PackPlace> {
    let (object, mut offset) = (Arc::from(object), 0);
    let place = |sealed: &Bytes| {
        let bytes = sealed.len() as u64;
        offset += bytes;
        let mark = mark(sealed).expect("what is stored is sealed, and has a checksum");
        PackPlace { object: Arc::clone(&object), offset: offset - bytes, bytes, mark }
    };
    replicas.iter().map(place).collect()
}

/// The sealed replicas of a pack, without looking into them.
///
/// # Errors
/// A [`Damage`], if the pack does not end where its last replica does.
pub fn split(pack: &Bytes) -> Result<Vec<Bytes>, Damage> {
    let (mut rest, mut replicas) = (pack.clone(), Vec::new());
    while replicas.is_empty() || !rest.is_empty() {
        let bytes = length(&rest)?;
        replicas.push(rest.split_to(bytes));
    }
    Ok(replicas)
}

#[cfg(test)]
mod tests {
    use evoxo_common::envelope::seal;

    use super::*;

    fn sealed(bodies: &[Vec<u8>]) -> Vec<Bytes> {
        bodies.iter().map(|body| seal(Kind::Finished, body)).collect()
    }

    #[test]
    fn each_replica_is_at_its_place() {
        for bodies in [vec![vec![]], vec![vec![7; 9]], vec![vec![], vec![1; 300], vec![2], vec![]]] {
            let replicas = sealed(&bodies);
            let pack = pack(&replicas);
            assert_eq!(split(&pack).unwrap(), replicas);
            for (place, replica) in places("finished/x", &replicas).iter().zip(&replicas) {
                let range = place.range();
                let read = pack.slice(range.start as usize..range.end as usize);
                assert!(read == replica && place.is_of(&read) && !place.is_of(&read.slice(1..)));
            }
            // Cut, it may still be a pack, of fewer replicas.
            let ends: Vec<u64> = places("", &replicas).iter().map(|place| place.range().end).collect();
            for cut in 0..pack.len() {
                assert_eq!(split(&pack.slice(..cut)).is_ok(), ends.contains(&(cut as u64)), "{cut}");
            }
            assert!(split(&[&pack[..], b"evoxo"].concat().into()).is_err());
        }
    }

    /// The same bytes with another replica's mark are another replica.
    #[test]
    fn another_replica_at_a_place_is_noticed() {
        let replicas = sealed(&[vec![1; 9], vec![2; 9]]);
        let places = places("finished/x", &replicas);
        assert!(places[0].is_of(&replicas[0]) && !places[0].is_of(&replicas[1]));
        let mut flipped = replicas[0].to_vec();
        flipped[20] ^= 1;
        assert!(!places[0].is_of(&flipped.into()));
        assert!(split(&Bytes::new()).is_err());
    }
}
