//! Stores that keep their promises, and stores that break them.

use std::{collections::BTreeMap, fmt, sync::Mutex};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, local::LocalFileSystem, memory::InMemory, path,
};

use super::*;
use crate::store::{check, check_objects};

/// How a store misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// It checks whether the name exists and then writes: several creators succeed.
    LooksFirst,
    /// The last creator's bytes stay, and the first one is told that it succeeded too.
    Overwrites,
    /// Its listings lack objects written a moment ago.
    ListsLate,
    /// Its listings show objects that were removed.
    ListsRemoved,
}

#[derive(Debug)]
struct Flawed {
    flaw: Flaw,
    objects: InMemory,
    listed: Mutex<BTreeMap<path::Path, ObjectMeta>>,
}

impl fmt::Display for Flawed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.flaw)
    }
}

#[async_trait]
impl ObjectStore for Flawed {
    async fn put_opts(&self, location: &path::Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let over = || PutOptions { mode: PutMode::Overwrite, ..options.clone() };
        match self.flaw {
            Flaw::LooksFirst => {
                let is_there = self.objects.get_opts(location, GetOptions::default()).await.is_ok();
                std::thread::sleep(std::time::Duration::from_millis(2));
                self.objects.put_opts(location, payload, if is_there { options } else { over() }).await
            }
            Flaw::Overwrites => self.objects.put_opts(location, payload, over()).await,
            Flaw::ListsLate | Flaw::ListsRemoved => self.objects.put_opts(location, payload, options).await,
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&path::Path>) -> Result<ListResult> {
        let mut now = self.objects.list_with_delimiter(prefix).await?;
        let mut listed = self.listed.lock().unwrap();
        let before = listed.clone();
        listed.extend(now.objects.iter().map(|meta| (meta.location.clone(), meta.clone())));
        match self.flaw {
            Flaw::ListsLate => now.objects = before.into_values().collect(),
            Flaw::ListsRemoved => now.objects = listed.values().cloned().collect(),
            Flaw::LooksFirst | Flaw::Overwrites => {}
        }
        Ok(now)
    }

    async fn put_multipart_opts(&self, at: &path::Path, how: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(at, how).await
    }

    async fn get_opts(&self, location: &path::Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, names: BoxStream<'static, Result<path::Path>>) -> BoxStream<'static, Result<path::Path>> {
        self.objects.delete_stream(names)
    }

    fn list(&self, prefix: Option<&path::Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn copy_opts(&self, from: &path::Path, to: &path::Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

#[test]
fn checking_a_directory_leaves_it_unchanged() {
    let (directory, _) = with_run(2);
    let before = names(directory.path());
    let checked = check(directory.path().to_str().unwrap(), 20).unwrap();
    assert_eq!((checked.races, checked.creators), (20, 16));
    assert_eq!(names(directory.path()), before);
    let objects: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap());
    check_objects(&objects, "the same", 3).unwrap();
}

#[test]
fn stores_that_break_a_guarantee_are_rejected_by_name() {
    for (flaw, words) in [
        (Flaw::LooksFirst, "creators were told that they created check-store/"),
        (Flaw::Overwrites, "creators were told that they created check-store/"),
        (Flaw::ListsLate, "was written, but a later listing does not show it"),
        (Flaw::ListsRemoved, "was removed, but a later listing still shows it"),
    ] {
        let flawed = Flawed { flaw, objects: InMemory::new(), listed: Mutex::default() };
        let objects: Arc<dyn ObjectStore> = Arc::new(flawed);
        let why = check_objects(&objects, "flawed", 10).unwrap_err();
        assert!(why.contains(words) && why.contains("the store flawed cannot be used"), "{flaw:?}: {why}");
        assert!(!why.contains('\n'), "{why}");
    }
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let why = check("/proc", 1).unwrap_err();
    assert!(why.contains("/proc") && why.contains("cannot be used"), "{why}");
}

#[test]
fn a_missing_directory_is_not_created() {
    let desk = tempfile::tempdir().unwrap();
    let (share, file) = (desk.path().join("share"), desk.path().join("file"));
    fs::write(&file, "").unwrap();
    for (place, words) in [(&share, "there is no directory"), (&file, "is a file: name a directory")] {
        let why = check(place.to_str().unwrap(), 1).unwrap_err();
        assert!(why.contains(place.to_str().unwrap()) && why.contains(words), "{why}");
    }
    assert!(!share.exists());
}
