//! The address of a coordinator, as people write it.

use std::{fmt, str::FromStr};

use tonic::transport::Uri;

/// The default port of a coordinator.
const PORT: u16 = 7600;
/// The form of an address.
const FORM: &str = "write HOST, HOST:PORT or http://HOST:PORT";

/// A coordinator's address, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or a numeric address; IPv6 in brackets.
    host: String,
    port: u16,
}

impl Address {
    /// The URI for a connection.
    ///
    /// # Panics
    /// Never: the parts were checked.
    #[must_use]
    pub fn uri(&self) -> Uri {
        format!("http://{self}").parse().expect("a host and a port make an address")
    }
}

impl Default for Address {
    /// This host at the default port.
    fn default() -> Self {
        Self { host: "127.0.0.1".into(), port: PORT }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    /// Adds a missing scheme and a missing port.
    fn from_str(text: &str) -> Result<Self, String> {
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = full.parse().map_err(|error| format!("{error}: {FORM}"))?;
        if uri.scheme_str() != Some("http") {
            return Err(format!("only http:// is understood: {FORM}"));
        }
        let authority = uri.authority().ok_or_else(|| format!("there is no host in it: {FORM}"))?;
        if uri.path().len() > 1 || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(format!("there is more in it than a host and a port: {FORM}"));
        }
        let host = authority.host().to_owned();
        let port = match authority.as_str().strip_prefix(host.as_str()) {
            Some("") => PORT,
            _ => authority.port_u16().ok_or("the port is not a number from 0 to 65535")?,
        };
        Ok(Self { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_or_refused() {
        for (text, full) in [
            ("http://127.0.0.1:7600", "127.0.0.1:7600"),
            ("lab7:80", "lab7:80"),
            ("lab7", "lab7:7600"),
            ("http://lab7/", "lab7:7600"),
            ("[::1]:9", "[::1]:9"),
            ("[::1]", "[::1]:7600"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), full);
            assert_eq!(address.uri().to_string(), format!("http://{full}/"));
        }
        for text in ["", "https://lab7:1", "lab7:port", "lab7:70000", "lab7:", "lab7/x", "lab7?x", "me@lab7", "a b"] {
            let sentence = text.parse::<Address>().unwrap_err();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{text}: {sentence}");
        }
        assert_eq!("127.0.0.1".parse(), Ok(Address::default()));
    }
}
