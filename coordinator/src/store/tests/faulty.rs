//! Objects in memory whose next creation, listing or removal can be made to fail or to come late.

use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};

/// How a creation fails.
#[derive(Debug)]
pub(super) enum Fault {
    /// The object is created, but a failure is reported: the response was lost.
    WrittenButDenied,
    /// The object is created, but its name is reported as taken: the first response was lost, and the request repeated.
    WrittenButTaken,
    /// The object is not created.
    Failed,
    /// The object is not created, and its name is reported as taken.
    Taken,
}

/// Runs between a coordinator's check of the store and its write.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Faulty {
    objects: InMemory,
    next: Mutex<Option<Fault>>,
    before_put: Mutex<Option<Meanwhile>>,
    before_removal: Mutex<Option<Meanwhile>>,
    before_list: Mutex<Option<(String, Meanwhile)>>,
    unreadable: Mutex<Option<String>>,
}

impl Faulty {
    /// Makes the object of this name unreadable.
    pub(super) fn cannot_read(&self, name: Option<String>) {
        *self.unreadable.lock().expect("no thread panics while it holds the lock") = name;
    }

    pub(super) fn next_put(&self, fault: Fault) {
        *self.next.lock().expect("no thread panics while it holds the lock") = Some(fault);
    }

    /// Before the next creation its coordinator is suspended, and `meanwhile` runs.
    pub(super) fn before_next_put(&self, meanwhile: impl FnOnce() + Send + 'static) {
        *self.before_put.lock().expect("no thread panics while it holds the lock") = Some(Box::new(meanwhile));
    }

    /// The same before the next listing of `directory`.
    pub(super) fn before_next_list(&self, directory: String, meanwhile: impl FnOnce() + Send + 'static) {
        *self.before_list.lock().expect("no thread panics while it holds the lock") =
            Some((directory, Box::new(meanwhile)));
    }

    /// The same before the next removal.
    pub(super) fn before_next_removal(&self, meanwhile: impl FnOnce() + Send + 'static) {
        *self.before_removal.lock().expect("no thread panics while it holds the lock") = Some(Box::new(meanwhile));
    }
}

fn let_happen(meanwhile: Option<Meanwhile>) {
    if let Some(meanwhile) = meanwhile {
        // The other store has its own runtime, and this thread cannot start a second one.
        std::thread::spawn(meanwhile).join().expect("no panic happens meanwhile");
    }
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let meanwhile = self.before_put.lock().expect("no thread panics while it holds the lock").take();
        let_happen(meanwhile);
        let fault = self.next.lock().expect("no thread panics while it holds the lock").take();
        if !matches!(fault, Some(Fault::Failed | Fault::Taken)) {
            let done = self.objects.put_opts(location, payload, options).await;
            if fault.is_none() {
                return done;
            }
        }
        let source = "the disk is on fire".into();
        match fault {
            Some(Fault::Taken | Fault::WrittenButTaken) => {
                Err(Error::AlreadyExists { path: location.to_string(), source })
            }
            _ => Err(Error::Generic { store: "faulty", source }),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let unreadable = self.unreadable.lock().expect("no thread panics while it holds the lock").clone();
        if unreadable.is_some_and(|name| location.as_ref() == name) {
            return Err(Error::Generic { store: "faulty", source: "it does not answer".into() });
        }
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let meanwhile = self.before_removal.lock().expect("no thread panics while it holds the lock").take();
        let_happen(meanwhile);
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let meanwhile = self
            .before_list
            .lock()
            .expect("no thread panics while it holds the lock")
            .take_if(|(directory, _)| prefix.is_some_and(|prefix| prefix.as_ref() == directory));
        let_happen(meanwhile.map(|(_, meanwhile)| meanwhile));
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
