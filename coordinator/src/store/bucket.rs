//! Buckets: S3, Google Cloud Storage and Azure, each behind a feature of this crate.

use std::sync::Arc;

use object_store::ObjectStore;

use super::StoreError;

/// Opens `scheme://...`. Keys and endpoints come from the environment variables of each provider's own tools
/// (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`...).
pub(super) fn open(spec: &str, scheme: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let (feature, built_in) = match scheme {
        "s3" | "s3a" => ("aws", cfg!(feature = "aws")),
        "gs" => ("gcp", cfg!(feature = "gcp")),
        "az" | "azure" | "abfs" | "abfss" | "adl" => ("azure", cfg!(feature = "azure")),
        _ => return Err(StoreError::UnknownKind(spec.to_owned())),
    };
    if !built_in {
        return Err(StoreError::NotBuiltIn { spec: spec.to_owned(), feature });
    }
    connect(spec)
}

#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
fn connect(spec: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let unusable = |cause: String| StoreError::Unusable { place: spec.to_owned(), cause };
    let url = url::Url::parse(spec).map_err(|error| unusable(error.to_string()))?;
    let environment =
        std::env::vars_os().filter_map(|(key, value)| key.into_string().ok().zip(value.into_string().ok()));
    let (objects, prefix) =
        object_store::parse_url_opts(&url, environment).map_err(|error| unusable(evoxo_process::innermost(&error)))?;
    Ok(Arc::new(object_store::prefix::PrefixStore::new(objects, prefix)))
}

#[cfg(not(any(feature = "aws", feature = "gcp", feature = "azure")))]
fn connect(spec: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Err(StoreError::UnknownKind(spec.to_owned()))
}
