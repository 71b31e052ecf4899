//! Buckets that speak S3: those of AWS, and those of MinIO, Ceph, R2 and others, whose address is in `AWS_ENDPOINT`. No other
//! protocol is supported.
//!
//! Keys and addresses come from the environment, in the variables of AWS's own tools. AWS's profile files are not read.

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

/// The prefix of a bucket's address.
const SCHEME: &str = "s3://";
/// AWS's default region.
const REGION: &str = "us-east-1";
/// Retries of one request. The coordinator itself retries a failed write every second, and reports after three failures that
/// its store cannot be written. So these retries cover a short hiccup of the bucket, not an outage.
const RETRIES_MAX: usize = 3;
/// No retry starts later than this after the first attempt.
const RETRY_TIME: Duration = Duration::from_secs(5);
/// The pause before the first retry, and the longest pause.
const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit for one request with its body: 300 MB at 10 MB/s. `AWS_TIMEOUT` changes it. A request that hangs is
/// abandoned much sooner: see [`Prompt`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a bucket.
pub(super) struct Settings {
    pairs: Vec<(Key, String)>,
    endpoint: String,
}

impl Settings {
    /// The settings from this process's environment.
    ///
    /// # Errors
    /// A sentence that names the variable, but not its value, which may be a key.
    pub(super) fn of_environment() -> Result<Self, String> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name.into_string().ok().filter(|name| name.starts_with("AWS_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        };
        Self::of(std::env::vars_os().filter_map(text))
    }

    /// The settings from these variables, named as in the environment. Unknown variables and empty values are ignored.
    fn of(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for (name, value) in variables {
            let Ok(key) = name.to_ascii_lowercase().parse::<Key>() else { continue };
            // A value that was read from a file ends with a line break.
            let value = value.trim();
            if value.chars().any(|letter| !(' '..='~').contains(&letter)) {
                return Err(format!("{name} has characters other than printable ASCII: set it again"));
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

    /// How many times slower than usual the network may be. Whoever raises `AWS_TIMEOUT` has a slow network.
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

/// Checks the server's address, because the client builds requests from it without checking: a malformed address would be a
/// panic.
fn check_endpoint(endpoint: &str, in_plain_text: bool) -> Result<(), String> {
    if endpoint.contains('@') {
        return Err(
            "AWS_ENDPOINT has an @: names and passwords belong in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into()
        );
    }
    let uri = endpoint.parse::<http::Uri>().ok();
    let good = uri.as_ref().and_then(|uri| {
        let authority = uri.authority()?;
        // The port, if there is one, must be a number.
        let plain = authority.as_str() == authority.host() || authority.port_u16().is_some();
        (plain && uri.query().is_none()).then_some(uri.scheme_str()?)
    });
    match good {
        Some("https") => Ok(()),
        Some("http") if in_plain_text => Ok(()),
        Some("http") => Err(format!(
            "{endpoint} is not encrypted: set AWS_ALLOW_HTTP=true if nobody can listen on the network, or give an \
             https:// address in AWS_ENDPOINT"
        )),
        _ => Err(format!(
            "{endpoint:?} is not the address of a server: set AWS_ENDPOINT to one like https://minio:9000, or for AWS's own \
             servers AWS_REGION to one like eu-central-1"
        )),
    }
}

/// Opens the bucket that `spec` names, `s3://BUCKET/PREFIX`, with settings given by the names of their variables. No request
/// is sent yet.
///
/// # Errors
/// A [`StoreError`] that says which part of the address or which setting cannot be used.
pub fn bucket(
    spec: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let settings = Settings::of(variables);
    open(spec, &settings.map_err(|cause| StoreError::Settings { place: spec.to_owned(), cause })?)
}

/// Opens a bucket with settings that were read before.
pub(super) fn open(spec: &str, settings: &Settings) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let (name, prefix) = address(spec)?;
    // The client does not start without a default provider of cryptography. If one is installed already, it is this one.
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
        // Every S3 server can remove one object. Not every server can remove many at once, and the answer to that is a list.
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

/// The name of the bucket, and the prefix of all its objects.
fn address(spec: &str) -> Result<(&str, Path), StoreError> {
    let wrong = |cause: String| StoreError::Address { spec: spec.to_owned(), cause };
    let Some(rest) = spec.strip_prefix(SCHEME) else { return Err(StoreError::UnknownKind(spec.to_owned())) };
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || !name.bytes().all(good) {
        return Err(wrong(format!("{name:?} cannot be the name of a bucket")));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    // The parser silently drops an extra slash at the front.
    let parsed = Path::parse(prefix).ok().filter(|_| !prefix.starts_with('/'));
    let prefix = parsed.ok_or_else(|| wrong(format!("{prefix:?} cannot be a prefix of object names")))?;
    Ok((name, prefix))
}

/// The runtime on which requests run: one thread for all buckets, for as long as the process lives. The callers' own runtimes
/// stand still between two requests, or end, and connections would stall or end with them.
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
