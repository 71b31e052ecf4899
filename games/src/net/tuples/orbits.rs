//! Orbits of numbered items (configurations) under the symmetries of a board, in the form in which the fast paths read them.
//! Items that are images of each other form an *orbit* and have adjacent *places*.

use std::collections::BTreeMap;

/// The greatest number of symmetries that a board can have: that of a cube without gravity.
const ORIENTATIONS_MAX: usize = 48;

/// The orbits of a group of symmetries on the items 0, 1, ...
#[derive(Debug)]
pub(super) struct Orbits {
    /// The number of images of each item, counting equal ones.
    pub orientations: usize,
    /// For each item: its own place.
    pub places: Vec<u32>,
    /// For each item: the places of its images.
    pub rows: Vec<Row>,
    /// Distinct rows of offsets (see [`Row::offsets`]). Each has, for each orientation, the place of the image counted from
    /// the first place of the orbit.
    pub offsets: Vec<u8>,
}

/// The places of the images of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The first place of the item's orbit.
    pub start: u32,
    /// The index of the row of [`Orbits::offsets`] that has the order of the item's images.
    pub offsets: u32,
}

impl Orbits {
    /// The orbits of `count` items, where `image(k, item)` is the image in orientation k. Orientation 0 changes nothing.
    pub(super) fn new(count: usize, orientations: usize, image: impl Fn(usize, usize) -> usize) -> Self {
        assert!((1..=ORIENTATIONS_MAX).contains(&orientations), "{orientations} symmetries of a board");
        let mut places = vec![u32::MAX; count];
        let mut rows = vec![Row { start: 0, offsets: 0 }; count];
        let mut next = 0;
        for item in 0..count {
            let start = next;
            for image in (0..orientations).map(|k| image(k, item)) {
                if places[image] == u32::MAX {
                    places[image] = next;
                    rows[image].start = start;
                    next += 1;
                }
            }
        }
        let mut offsets = Vec::new();
        let mut known = BTreeMap::new();
        let mut row = Vec::with_capacity(orientations);
        for item in 0..count {
            row.clear();
            row.extend((0..orientations).map(|k| (places[image(k, item)] - rows[item].start) as u8));
            rows[item].offsets = match known.get(&row) {
                Some(index) => *index,
                None => {
                    let index = known.len() as u32;
                    offsets.extend_from_slice(&row);
                    known.insert(row.clone(), index);
                    index
                }
            };
        }
        Self { orientations, places, rows, offsets }
    }

    /// For each item: the index of its orbit. Orbits are numbered in the order of their first items.
    pub(super) fn ranks(&self) -> Vec<u32> {
        // By place: first 1 where an orbit starts, then the number of orbits that start earlier.
        let mut before = vec![0; self.rows.len()];
        self.rows.iter().for_each(|row| before[row.start as usize] = 1);
        let mut next = 0;
        for rank in &mut before {
            next += std::mem::replace(rank, next);
        }
        self.rows.iter().map(|row| before[row.start as usize]).collect()
    }
}
