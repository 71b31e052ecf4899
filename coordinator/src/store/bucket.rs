//! Buckets that speak S3: AWS's own, and those of MinIO, Ceph, R2 and others, whose address is `AWS_ENDPOINT`. Nothing here
//! is for other protocols.
//!
//! Keys and addresses come from the environment, in the variables of AWS's own tools; its files of profiles are not read.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use evoxo_process::innermost;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey as Key, S3ConditionalPut},
    client::{ClientConfigKey, SpawnedReqwestConnector},
    path::Path,
    prefix::PrefixStore,
};
use tokio::runtime::Handle;
use tokio_rustls::rustls::crypto::ring;

use super::{Outlook, StoreError, prompt::Prompt};

/// How the address of a bucket begins.
const SCHEME: &str = "s3://";
/// The region in which AWS has a bucket if nobody says another one.
const REGION: &str = "us-east-1";
/// Attempts after the first one, beneath whatever the coordinator repeats: it tries a failed write again every second, and
/// says after three failures that its store cannot be written. So these are for a stumble of the bucket, not for an outage.
const RETRIES_MAX: usize = 3;
/// No attempt begins later than this after the first one.
const RETRY_TIME: Duration = Duration::from_secs(5);
/// The pause before the first of them, and the longest.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time for one request with its bytes: 300 MB at 10 MB/s. `AWS_TIMEOUT` changes it. One that hangs is given up long before: see
/// [`Prompt`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a bucket.
pub(super) struct Settings {
    pairs: Vec<(Key, String)>,
    endpoint: String,
}

impl Settings {
    /// Those of this process.
    ///
    /// # Errors
    /// A sentence that names the variable, and not its value if that may be a key.
    pub(super) fn of_environment() -> Result<Self, String> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("AWS_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        };
        Self::of(std::env::vars_os().filter_map(text))
    }

    /// Those with these names, as in the environment. Others and empty ones are ignored.
    fn of(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for (name, value) in variables {
            let Ok(key) = name.to_ascii_lowercase().parse::<Key>() else { continue };
            // A value from a file ends with a line break.
            let value = value.trim();
            if value.chars().any(|letter| !(' '..='~').contains(&letter)) {
                return Err(format!("{name} has something else than printable letters of ASCII: set it again"));
            }
            if !value.is_empty() {
                pairs.push((key, value.to_owned()));
            }
        }
        let value = |key: Key| pairs.iter().rev().find(|(found, _)| *found == key).map(|(_, value)| value.as_str());
        let region = value(Key::Region).or_else(|| value(Key::DefaultRegion)).unwrap_or(REGION);
        let named = value(Key::S3Endpoint).or_else(|| value(Key::Endpoint));
        let endpoint = named.map_or_else(|| format!("https://s3.{region}.amazonaws.com"), str::to_owned);
        let in_plain_text = value(Key::Client(ClientConfigKey::AllowHttp)).is_some_and(|value| value != "false");
        check_endpoint(&endpoint, in_plain_text)?;
        Ok(Self { pairs, endpoint })
    }

    /// How many times slower than usual the line may be: whoever gives requests more time has such a line.
    fn slowness(&self) -> f64 {
        let is_timeout = |(key, _): &&(Key, String)| *key == Key::Client(ClientConfigKey::Timeout);
        let given = self.pairs.iter().rev().find(is_timeout);
        let given = given.and_then(|(_, value)| humantime::parse_duration(value).ok());
        given.map_or(1.0, |given| (given.as_secs_f64() / REQUEST_TIMEOUT.as_secs_f64()).max(1.0))
    }

    /// The address of the server, for messages.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }
}

/// Requests are made of it without a further look: what is no address would be a panic.
fn check_endpoint(endpoint: &str, in_plain_text: bool) -> Result<(), String> {
    if endpoint.contains('@') {
        return Err(
            "AWS_ENDPOINT has an @: names and passwords belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into(),
        );
    }
    let uri = endpoint.parse::<http::Uri>().ok();
    let good = uri.as_ref().and_then(|uri| {
        let authority = uri.authority()?;
        // No port that is none.
        let plain = authority.as_str() == authority.host() || authority.port_u16().is_some();
        (plain && uri.query().is_none()).then_some(uri.scheme_str()?)
    });
    match good {
        Some("https") => Ok(()),
        Some("http") if in_plain_text => Ok(()),
        Some("http") => Err(format!(
            "{endpoint} is not encrypted: set AWS_ALLOW_HTTP=true if nobody can listen on the way to it, or give an https:// \
             address in AWS_ENDPOINT"
        )),
        _ => Err(format!(
            "{endpoint:?} is not the address of a server: set AWS_ENDPOINT to one like https://minio:9000, or for AWS's own \
             servers AWS_REGION to one like eu-central-1"
        )),
    }
}

/// Opens the bucket that `spec` names, `s3://BUCKET/PREFIX`, with settings by the names of their variables. Nothing is asked
/// of it yet.
///
/// # Errors
/// A [`StoreError`] that says which part of the address or of the settings cannot be used.
pub fn bucket(
    spec: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let settings = Settings::of(variables);
    open(spec, &settings.map_err(|cause| StoreError::Settings { place: spec.to_owned(), cause })?)
}

/// The same with settings that were read.
pub(super) fn open(spec: &str, settings: &Settings) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let (name, prefix) = address(spec)?;
    // The client refuses to begin without one. If there is one already, it is the same.
    let _ = ring::default_provider().install_default();
    let client = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT);
    let (init_backoff, max_backoff) = RETRY_PAUSE;
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 2.0 };
    let retry = RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME };
    let defaults = AmazonS3Builder::new().with_client_options(client).with_retry(retry);
    let settled = settings.pairs.iter().fold(defaults, |builder, (key, value)| builder.with_config(*key, value));
    let built = settled
        .with_bucket_name(name)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // Every S3 has the removal of one object; that of many at once is not everywhere, and its answers are lists.
        .with_disable_bulk_delete(true)
        .with_http_connector(Prompt {
            inner: SpawnedReqwestConnector::new(connections()),
            slowness: settings.slowness(),
        })
        .build();
    let objects = built.map_err(|error| StoreError::Bucket {
        place: spec.to_owned(),
        endpoint: settings.endpoint.clone(),
        cause: innermost(&error),
        outlook: Outlook::Stays,
    })?;
    Ok(Arc::new(PrefixStore::new(objects, prefix)))
}

/// The name of a bucket, and the prefix of all objects in it.
fn address(spec: &str) -> Result<(&str, Path), StoreError> {
    let wrong = |cause: String| StoreError::Address { spec: spec.to_owned(), cause };
    let Some(rest) = spec.strip_prefix(SCHEME) else { return Err(StoreError::UnknownKind(spec.to_owned())) };
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || !name.bytes().all(good) {
        return Err(wrong(format!("{name:?} cannot be the name of a bucket")));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    // The parser takes one slash too many for none.
    let parsed = Path::parse(prefix).ok().filter(|_| !prefix.starts_with('/'));
    let prefix = parsed.ok_or_else(|| wrong(format!("{prefix:?} cannot be the prefix of names")))?;
    Ok((name, prefix))
}

/// Where requests are made: a thread of its own, for all buckets and as long as the process lives. The runtimes of those who
/// ask stand still between two requests, or end, and connections would stand still or end with them.
fn connections() -> Handle {
    static CONNECTIONS: OnceLock<Handle> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build();
        let runtime = runtime.expect("a runtime needs a few file descriptors, as the store's own did");
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name("bucket".into());
        let started = thread.spawn(move || runtime.block_on(std::future::pending::<()>()));
        started.expect("the system has a thread for the coordinator");
        handle
    };
    CONNECTIONS.get_or_init(start).clone()
}
