//! The objects of a bucket, and how they are listed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use bytes::Bytes;
use evoxo_common::digest::Digest;

/// How many names a page of a list has: few, so that lists have several pages.
const PAGE: usize = 5;

/// An object.
pub(super) struct Object {
    pub(super) bytes: Bytes,
    pub(super) tag: String,
    /// The object's number among all that were written. It gives the time: one second after the previous object, in January
    /// 2026.
    written: u64,
}

impl Object {
    fn clock(&self) -> (u64, String) {
        let seconds = self.written % 86_400;
        let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        (self.written / 86_400 + 1, time)
    }

    fn modified_iso(&self) -> String {
        let (day, time) = self.clock();
        format!("2026-01-{day:02}T{time}.000Z")
    }

    pub(super) fn modified_http(&self) -> String {
        let (day, time) = self.clock();
        // The first of January was a Thursday.
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(day as usize - 1) % 7];
        format!("{weekday}, {day:02} Jan 2026 {time} GMT")
    }
}

/// The outcome of a creation.
pub(super) enum Created {
    New(String),
    Exists,
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn of(text: &str) -> Self {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (decoded(name), decoded(&value.replace('+', " ")))).collect())
    }

    fn value(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// A text with its percent codes decoded.
pub(super) fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.extend(code);
        bytes.extend(part.get(2..).unwrap_or_default().as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Default)]
pub(super) struct Objects {
    objects: BTreeMap<String, Object>,
    written: u64,
}

impl Objects {
    pub(super) fn has(&self, name: &str) -> bool {
        self.objects.contains_key(name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }

    pub(super) fn read(&self, name: &str) -> Option<&Object> {
        self.objects.get(name)
    }

    pub(super) fn write(&mut self, name: &str, bytes: &Bytes) -> String {
        self.written += 1;
        let tag = format!("\"{}\"", Digest::of(bytes).short());
        self.objects.insert(name.into(), Object { bytes: bytes.clone(), tag: tag.clone(), written: self.written });
        tag
    }

    pub(super) fn create(&mut self, name: &str, bytes: &Bytes) -> Created {
        if self.has(name) { Created::Exists } else { Created::New(self.write(name, bytes)) }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.objects.remove(name);
    }

    /// A page of a list, as ListObjectsV2 answers. It starts after the token, which is the last name or prefix of the
    /// previous page.
    pub(super) fn list(&self, query: &Query) -> String {
        let (prefix, delimiter) = (query.value("prefix"), query.value("delimiter"));
        let after = query.value("continuation-token").max(query.value("start-after"));
        // An object, or a prefix for all objects below it.
        let shown = |name: &str| match name[prefix.len()..].split_once(delimiter) {
            Some((directory, _)) if !delimiter.is_empty() => format!("{prefix}{directory}{delimiter}"),
            _ => name.to_owned(),
        };
        let found: BTreeSet<String> =
            self.objects.keys().filter(|name| name.starts_with(prefix)).map(|name| shown(name)).collect();
        let rest: Vec<&String> = found.iter().filter(|name| after.is_empty() || name.as_str() > after).collect();
        let page = &rest[..rest.len().min(PAGE)];
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>");
        for name in page {
            // Writing to a string cannot fail.
            let _ = match self.objects.get(*name) {
                Some(object) => write!(
                    xml,
                    "<Contents><Key>{name}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                    object.modified_iso(),
                    object.tag.replace('"', "&quot;"),
                    object.bytes.len()
                ),
                None => write!(xml, "<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
            };
        }
        if let Some(last) = page.last().filter(|_| rest.len() > page.len()) {
            let _ = write!(xml, "<NextContinuationToken>{last}</NextContinuationToken>");
        }
        let _ = write!(xml, "<IsTruncated>{}</IsTruncated></ListBucketResult>", rest.len() > page.len());
        xml
    }
}
