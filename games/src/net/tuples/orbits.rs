//! What the symmetries of a board do to numbered things (units, states of lines), as the fast paths read it: things that
//! are images of each other are an *orbit* and stand side by side, each in its *place*.

use std::collections::BTreeMap;

/// A board has at most so many symmetries: a cube without gravity.
const ORIENTATIONS_MAX: usize = 48;

/// A group's orbits on the things 0, 1, ...
#[derive(Debug)]
pub(super) struct Orbits {
    /// How many images each thing has, counting equal ones.
    pub orientations: usize,
    /// For each thing, its own place.
    pub places: Vec<u32>,
    /// For each thing, where its images are.
    pub rows: Vec<Row>,
    /// See [`Row::turn`]: for each turn and orientation the image's place, counted from the first of its orbit.
    pub turns: Vec<u8>,
}

/// Where the images of a thing are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The first place of its orbit.
    pub start: u32,
    /// In which order its images stand: the row of [`Orbits::turns`].
    pub turn: u32,
}

impl Orbits {
    /// The orbits of `count` things, where `image(k, thing)` is the image in orientation k; orientation 0 changes nothing.
    pub(super) fn new(count: usize, orientations: usize, image: impl Fn(usize, usize) -> usize) -> Self {
        assert!((1..=ORIENTATIONS_MAX).contains(&orientations), "{orientations} symmetries of a board");
        let mut places = vec![u32::MAX; count];
        let mut rows = vec![Row { start: 0, turn: 0 }; count];
        let mut next = 0;
        for thing in 0..count {
            let start = next;
            for image in (0..orientations).map(|k| image(k, thing)) {
                if places[image] == u32::MAX {
                    places[image] = next;
                    rows[image].start = start;
                    next += 1;
                }
            }
        }
        let mut turns = Vec::new();
        let mut known = BTreeMap::new();
        let mut turn = Vec::with_capacity(orientations);
        for thing in 0..count {
            turn.clear();
            turn.extend((0..orientations).map(|k| (places[image(k, thing)] - rows[thing].start) as u8));
            rows[thing].turn = match known.get(&turn) {
                Some(index) => *index,
                None => {
                    let index = known.len() as u32;
                    turns.extend_from_slice(&turn);
                    known.insert(turn.clone(), index);
                    index
                }
            };
        }
        Self { orientations, places, rows, turns }
    }

    /// For each thing, which orbit it is of; orbits are numbered in the order of their first things.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut starts: Vec<u32> = self.rows.iter().map(|row| row.start).collect();
        starts.sort_unstable();
        starts.dedup();
        let rank = |row: &Row| starts.partition_point(|start| *start < row.start) as u32;
        self.rows.iter().map(rank).collect()
    }
}
