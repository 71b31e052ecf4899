//! The addresses of a coordinator and its standbys, as users write them.

use std::{fmt, str::FromStr};

use tonic::transport::Uri;

use crate::host::host_name;

/// The default port of a coordinator.
const PORT: u16 = 7600;
/// The form of an address.
const FORM: &str = "write HOST, HOST:PORT or http://HOST:PORT, an IPv6 address in brackets";

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

impl Address {
    /// Whether the address refers to the local host on every host.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
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

/// The maximum number of addresses of one cluster.
const ADDRESSES_MAX: usize = 8;

/// The addresses of a cluster's coordinators, of which one leads at a time; at least one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<Address>);

impl Addresses {
    /// The addresses, in the order in which they were given.
    #[must_use]
    pub fn all(&self) -> &[Address] {
        &self.0
    }

    /// The addresses for programs on other hosts, where this host has its name.
    #[must_use]
    pub fn from_elsewhere(&self) -> Self {
        let named = |address: &Address| match address.is_loopback() {
            true => Address { host: host_name(), port: address.port },
            false => address.clone(),
        };
        Self(self.0.iter().map(named).collect())
    }
}

impl From<Address> for Addresses {
    fn from(address: Address) -> Self {
        Self(vec![address])
    }
}

impl Default for Addresses {
    /// This host at the default port.
    fn default() -> Self {
        Address::default().into()
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(","))
    }
}

impl FromStr for Addresses {
    type Err = String;

    /// Reads addresses separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let all = text.split(',').map(|address| address.trim().parse()).collect::<Result<Vec<Address>, _>>()?;
        match all.len() {
            ..=ADDRESSES_MAX => Ok(Self(all)),
            more => Err(format!("these are {more} addresses: a cluster has at most {ADDRESSES_MAX}")),
        }
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
        let authority = uri.authority().ok_or_else(|| format!("the address has no host: {FORM}"))?;
        if uri.path().len() > 1 || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(format!("the address has more than a host and a port: {FORM}"));
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
    fn addresses_are_completed_or_rejected() {
        for (text, full) in [
            ("http://127.0.0.1:7600", "127.0.0.1:7600"),
            ("lab7:80", "lab7:80"),
            ("lab7", "lab7:7600"),
            ("http://lab7/", "lab7:7600"),
            ("[::1]:9", "[::1]:9"),
            ("[::1]", "[::1]:7600"),
            ("[fe80::1%eth0]:9", "[fe80::1%eth0]:9"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), full);
            assert_eq!(address.uri().to_string(), format!("http://{full}/"));
        }
        for text in [
            "",
            "https://lab7:1",
            "lab7:port",
            "lab7:70000",
            "lab7:",
            "lab7/x",
            "lab7?x",
            "me@lab7",
            "a b",
            "fe80::1%eth0",
        ] {
            let sentence = text.parse::<Address>().unwrap_err();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{text}: {sentence}");
        }
        assert_eq!("127.0.0.1".parse(), Ok(Address::default()));
    }

    #[test]
    fn lists_of_addresses_survive_a_round_trip() {
        let several: Addresses = "lab7, [::1]:9".parse().unwrap();
        assert_eq!(several.to_string(), "lab7:7600,[::1]:9");
        assert_eq!(several.to_string().parse(), Ok(several));
        for text in ["", "lab7,", ",", "a,b,c,d,e,f,g,h,i"] {
            assert!(text.parse::<Addresses>().is_err(), "{text}");
        }
        for (text, own) in
            [("localhost", true), ("127.0.0.2:9", true), ("[::1]", true), ("lab7", false), ("10.0.0.1", false)]
        {
            assert_eq!(text.parse::<Address>().unwrap().is_loopback(), own, "{text}");
        }
    }
}
