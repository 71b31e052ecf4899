//! Writes pictures as files.

use std::{fs, path::Path};

use anyhow::Context as _;
use evoxo_common::{plot, report::Report};

/// The figures and maps of a report, as names and SVGs.
pub(crate) fn pictures(report: &Report) -> impl Iterator<Item = (String, String)> {
    let maps = report.maps.iter().map(|map| (map.name.clone(), plot::map(map)));
    report.figures.iter().map(|figure| (figure.name.clone(), plot::svg(figure))).chain(maps)
}

/// Writes pictures, given by name and SVG, into the directory that was given with `--plots`.
pub(crate) fn write(directory: &Path, pictures: impl Iterator<Item = (String, String)>) -> anyhow::Result<()> {
    let unwritable =
        || format!("cannot write the plots into {}: choose another directory with --plots", directory.display());
    fs::create_dir_all(directory).with_context(unwritable)?;
    for (name, svg) in pictures {
        fs::write(directory.join(format!("{name}.svg")), svg).with_context(unwritable)?;
    }
    Ok(())
}
