//! What `--store` names: a directory, or a bucket if this build knows buckets.

use std::{
    fs::{File, create_dir_all},
    path::{Path, PathBuf},
    sync::Arc,
};

use object_store::{ObjectStore, local::LocalFileSystem};

use super::{StoreError, bucket, root_cause};

/// An opened place.
pub(super) struct Place {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// If it is one.
    pub(super) directory: Option<PathBuf>,
}

/// Opens what `spec` names.
pub(super) fn open(spec: &str) -> Result<Place, StoreError> {
    match spec.split_once("://") {
        None => open_directory(spec, Path::new(spec)),
        Some(("file", path)) => open_directory(spec, Path::new(path)),
        Some((scheme, _)) => Ok(Place { objects: bucket::open(spec, scheme)?, directory: None }),
    }
}

fn open_directory(spec: &str, directory: &Path) -> Result<Place, StoreError> {
    let unusable = |cause: String| StoreError::Unusable { place: spec.to_owned(), cause };
    make_directory(directory).map_err(|error| unusable(error.to_string()))?;
    let objects = LocalFileSystem::new_with_prefix(directory).map_err(|error| unusable(root_cause(&error)))?;
    let objects = Arc::new(objects.with_fsync(true).with_automatic_cleanup(true));
    Ok(Place { objects, directory: Some(directory.to_owned()) })
}

/// Makes a directory that outlives a loss of power: `object_store` sees to what is made below it, not to itself.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    create_dir_all(directory)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}
