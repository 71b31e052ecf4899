//! The family of a champion: its ancestors back to the first individuals, and where each of its genes was made.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::bail;
use evoxo_common::experiment::{Birth, Origin, mark};
use serde_json::{Value, json};

/// The most genes of all individuals together: about 250 MB of them.
const GENES_MAX: usize = 100_000_000;

/// An individual. Its number, from 0, is its place in the order of births.
struct Individual {
    /// The generation in which it was evaluated, from 0.
    generation: u64,
    /// The numbers of its parents.
    parents: Vec<usize>,
    origins: Vec<Origin>,
}

/// All individuals of a search, in the order of their births.
#[derive(Default)]
pub(crate) struct Pedigree {
    all: Vec<Individual>,
    generations: u64,
    genes: usize,
    /// The number of the youngest individual with a mark.
    of_mark: BTreeMap<u64, usize>,
}

impl Pedigree {
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Adds the births of a generation, whose parents are all older.
    pub(crate) fn add(&mut self, births: Vec<Birth>) -> anyhow::Result<()> {
        self.genes += births.iter().map(|birth| birth.origins.len()).sum::<usize>();
        if self.genes > GENES_MAX {
            bail!(
                "until generation {} the search has more than {} million genes, which is too much to follow",
                self.generations,
                GENES_MAX / 1_000_000
            );
        }
        for Birth { mark, parents, origins } in births {
            let number = |mark: &u64| *self.of_mark.get(mark).expect("parents are evaluated before their children");
            let parents = parents.iter().map(number).collect();
            self.of_mark.insert(mark, self.all.len());
            self.all.push(Individual { generation: self.generations, parents, origins });
        }
        self.generations += 1;
        Ok(())
    }

    /// The family of the youngest individual with these genes; `None` if there is none.
    pub(crate) fn family(&self, genes: Vec<u64>) -> Option<Family<'_>> {
        let champion = *self.of_mark.get(&mark(&genes))?;
        let mut shares = BTreeMap::from([(champion, 1.0)]);
        let mut next = Some(champion);
        // Parents are older than their children, so everybody has their whole share when it is their turn.
        while let Some(number) = next {
            let parents = &self.all[number].parents;
            let share = shares[&number] / parents.len().max(1) as f64;
            for parent in parents {
                *shares.entry(*parent).or_insert(0.0) += share;
            }
            next = shares.range(..number).next_back().map(|(number, _)| *number);
        }
        let made = (0..genes.len()).map(|gene| self.made(champion, gene)).collect();
        Some(Family { pedigree: self, champion, genes, shares, made })
    }

    /// Where a gene of an individual was made.
    fn made(&self, individual: usize, gene: usize) -> Made {
        let mut carriers = vec![individual];
        loop {
            let at = carriers[carriers.len() - 1];
            match self.all[at].origins[gene] {
                Origin::Parent(place) => carriers.push(self.all[at].parents[usize::from(place)]),
                by => return Made { by, carriers },
            }
        }
    }
}

/// Where a gene of the champion was made.
struct Made {
    /// What made it; never a parent.
    by: Origin,
    /// Those that had the gene, from the champion back to the one in which it was made.
    carriers: Vec<usize>,
}

impl Made {
    fn in_individual(&self) -> usize {
        self.carriers[self.carriers.len() - 1]
    }
}

/// A champion and its ancestors.
pub(crate) struct Family<'a> {
    pedigree: &'a Pedigree,
    champion: usize,
    /// The champion's genes.
    genes: Vec<u64>,
    /// The champion and its ancestors, each with its share of the champion if each parent gives an equal part.
    shares: BTreeMap<usize, f64>,
    /// Where each gene of the champion was made.
    made: Vec<Made>,
}

/// A gene of the champion as it is told.
pub(crate) struct Inherited {
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) by: &'static str,
    /// The individual in which it was made, and its generation.
    pub(crate) individual: usize,
    pub(crate) generation: u64,
    /// How many generations of descendants had it unchanged.
    pub(crate) passed: usize,
}

impl Family<'_> {
    /// The champion's number and generation.
    pub(crate) fn champion(&self) -> (usize, u64) {
        (self.champion, self.pedigree.all[self.champion].generation)
    }

    /// The number of ancestors.
    pub(crate) fn ancestors(&self) -> usize {
        self.shares.len() - 1
    }

    /// The ancestors without parents, the greatest share first: their number, their share, and how many genes of the
    /// champion were made in them.
    pub(crate) fn founders(&self) -> Vec<(usize, f64, usize)> {
        let genes = |number: usize| self.made.iter().filter(|made| made.in_individual() == number).count();
        let founders = self.shares.iter().filter(|(number, _)| self.pedigree.all[**number].parents.is_empty());
        let mut founders: Vec<_> = founders.map(|(number, share)| (*number, *share, genes(*number))).collect();
        founders.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        founders
    }

    /// The champion and the ancestors through which its genes came.
    pub(crate) fn carriers(&self) -> BTreeSet<usize> {
        self.made.iter().flat_map(|made| made.carriers.iter().copied()).chain([self.champion]).collect()
    }

    /// The genes of the champion. `value` reads the bits of the gene with a number.
    pub(crate) fn genes(&self, names: &[String], value: &dyn Fn(usize, u64) -> Value) -> Vec<Inherited> {
        let told = |(gene, (made, name)): (usize, (&Made, &String))| {
            let individual = made.in_individual();
            Inherited {
                name: name.clone(),
                value: value(gene, self.genes[gene]),
                by: made.by.name(),
                individual,
                generation: self.pedigree.all[individual].generation,
                passed: made.carriers.len() - 1,
            }
        };
        self.made.iter().zip(names).enumerate().map(told).collect()
    }

    /// All members as JSON, oldest first: number, generation, parents, share, and where each gene comes from: the place of a
    /// parent, or a word.
    pub(crate) fn members(&self) -> Value {
        let origin = |origin: &Origin| match origin {
            Origin::Parent(place) => Value::from(*place),
            other => other.name().into(),
        };
        let member = |(number, share): (&usize, &f64)| {
            let Individual { generation, parents, origins, .. } = &self.pedigree.all[*number];
            json!({
                "individual": number, "generation": generation, "parents": parents, "share": share,
                "origins": origins.iter().map(origin).collect::<Value>(),
            })
        };
        self.shares.iter().map(member).collect()
    }

    /// The family as a graph for Graphviz, from parents to children. Solid edges pass on genes of the champion.
    pub(crate) fn dot(&self) -> String {
        let mut dot = String::from("digraph ancestry {\n  rankdir=LR;\n  node [shape=circle, fontsize=9];\n");
        let passed = self.edges();
        for number in self.shares.keys() {
            let Individual { generation, parents, .. } = &self.pedigree.all[*number];
            let look = if *number == self.champion { ", shape=doublecircle" } else { "" };
            let _ = writeln!(dot, "  {number} [tooltip=\"generation {generation}\"{look}];");
            for parent in parents.iter().collect::<BTreeSet<_>>() {
                let style = if passed.contains(&(*parent, *number)) { "solid" } else { "dotted" };
                let _ = writeln!(dot, "  {parent} -> {number} [style={style}];");
            }
        }
        dot + "}\n"
    }

    /// Parents and children between which a gene of the champion passed.
    fn edges(&self) -> BTreeSet<(usize, usize)> {
        self.made.iter().flat_map(|made| made.carriers.windows(2).map(|pair| (pair[1], pair[0]))).collect()
    }

    /// A picture: generations from left to right, ancestors as dots, and lines along which genes of the champion passed. Of
    /// the other ancestors at most [`OTHERS_MAX`] are drawn.
    pub(crate) fn svg(&self, title: &str) -> String {
        let (carriers, last) = (self.carriers(), self.pedigree.all[self.champion].generation.max(1));
        let few = self.shares.len() - carriers.len() <= OTHERS_MAX;
        let mut lanes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for number in self.shares.keys().filter(|number| few || carriers.contains(number)) {
            lanes.entry(self.pedigree.all[*number].generation).or_default().push(*number);
        }
        let widest = lanes.values().map(Vec::len).max().unwrap_or(1);
        let (left, width, top, height) = (30.0, 900.0, 50.0, 420.0);
        let mut places = BTreeMap::new();
        for (generation, lane) in &lanes {
            for (place, number) in lane.iter().enumerate() {
                let offset = (place as f64 + 0.5 - lane.len() as f64 / 2.0) / widest as f64;
                let x = left + width * *generation as f64 / last as f64;
                places.insert(*number, (x, top + height * (0.5 + offset)));
            }
        }
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 520\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"960\" height=\"520\" fill=\"#fff\"/>\n<text x=\"30\" y=\"28\" \
             font-size=\"16\" font-weight=\"700\">{title}</text>\n"
        );
        let (passed, mut lines) = (self.edges(), [String::new(), String::new()]);
        for (child, (x2, y2)) in &places {
            for parent in &self.pedigree.all[*child].parents {
                let Some((x1, y1)) = places.get(parent) else { continue };
                let line = &mut lines[usize::from(passed.contains(&(*parent, *child)))];
                let _ = write!(line, "M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
            }
        }
        for (line, look) in lines.iter().zip(["stroke=\"#e3e8ee\" stroke-width=\".5\"", "stroke=\"#0a66c8\""]) {
            let _ = writeln!(svg, "<path d=\"{line}\" {look}/>");
        }
        for (number, (x, y)) in &places {
            let (radius, colour) = match (*number == self.champion, carriers.contains(number)) {
                (true, _) => (7, "#d55e00"),
                (false, true) => (3, "#0a66c8"),
                (false, false) => (2, "#c6cfdb"),
            };
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>");
        }
        let legend = "orange: the champion; blue: ancestors through which its genes came; grey: other ancestors";
        let hidden = if few { "" } else { " (too many, left out)" };
        let _ = writeln!(
            svg,
            "<text x=\"30\" y=\"490\">generation 0</text>\n<text x=\"930\" y=\"490\" text-anchor=\"end\">generation \
             {last}</text>\n<text x=\"30\" y=\"511\" fill=\"#556\">{legend}{hidden}</text>",
        );
        svg + "</svg>\n"
    }
}

/// The most ancestors in a picture through which no gene came.
const OTHERS_MAX: usize = 4000;
