//! Decides which requests are answered at all, and sets the headers of every response.
//!
//! A browser sends requests on behalf of any page that it shows. So a request must name a host of the list; otherwise a
//! foreign name that leads to this address could read everything (DNS rebinding). A request that changes something must come
//! from this page itself.

use std::{borrow::Cow, net::IpAddr};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header, uri::Authority};

/// The names of this host that are always allowed.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Nothing is loaded from elsewhere, and no other page may show this one in a frame.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRefusal(pub(super) StatusCode, pub(super) Cow<'static, str>);

impl PageRefusal {
    pub(super) fn new(status: StatusCode, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self(status, sentence.into())
    }
}

/// The host names under which the page may be reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Whether the page is served over TLS. If so, orders must come from a page that was, too.
    only_tls: bool,
}

impl Hosts {
    /// Allows these names or addresses in addition to those of loopback. People on other hosts must use one of them.
    pub(crate) fn new(names: &[String]) -> Self {
        let written = |name: &String| match name.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => name.to_ascii_lowercase(),
        };
        Self { names: names.iter().map(written).collect(), only_tls: false }
    }

    /// The same for a page that is served over TLS.
    pub(crate) fn of_tls(names: &[String]) -> Self {
        Self { only_tls: true, ..Self::new(names) }
    }

    /// Checks the peer, the host name of the request and, if the request changes something, the page that sends it.
    pub(crate) fn check(
        &self,
        peer: IpAddr,
        method: &Method,
        uri: &http::Uri,
        headers: &HeaderMap,
    ) -> Result<(), PageRefusal> {
        let here = peer.to_canonical().is_loopback();
        let named = |host: &str| self.names.iter().any(|name| name == host);
        if !here && self.names.is_empty() {
            return Err(PageRefusal::new(
                StatusCode::FORBIDDEN,
                "this coordinator shows its page only on its own host: use an SSH tunnel, or start it with --page-host NAME",
            ));
        }
        let host = only(headers, header::HOST);
        let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let Some(authority) = authority.filter(|authority| !authority.as_str().contains('@')) else {
            return Err(PageRefusal::new(StatusCode::BAD_REQUEST, "the request must have exactly one header Host"));
        };
        let same = uri.authority().is_none_or(|target| *target == authority);
        let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
        if !same || !(named(&name) || here && LOOPBACK.contains(&name.as_str())) {
            return Err(PageRefusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                "this page does not answer to that host name: start the coordinator with --page-host NAME",
            ));
        }
        // Another page could not read the answer, but it could cause much computation. Browsers say in this header which page
        // sends the request.
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if uri.path().starts_with("/api/") && site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Err(PageRefusal::new(StatusCode::FORBIDDEN, "only this coordinator's own page may ask for that"));
        }
        if matches!(*method, Method::GET | Method::HEAD) {
            return Ok(());
        }
        let origin = only(headers, header::ORIGIN).and_then(|origin| origin.to_str().ok());
        let from = origin.and_then(|origin| match origin.strip_prefix("http://") {
            Some(plain) if !self.only_tls => Some(plain),
            _ => origin.strip_prefix("https://"),
        });
        if from.is_none_or(|from| !from.eq_ignore_ascii_case(authority.as_str())) {
            return Err(PageRefusal::new(StatusCode::FORBIDDEN, "only this coordinator's own page may ask for that"));
        }
        Ok(())
    }
}

/// The value of a header that occurs exactly once.
pub(super) fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Adds the headers that every response has.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [u8; 4] = [127, 0, 0, 1];
    const THERE: [u8; 4] = [10, 0, 0, 9];

    fn check(hosts: &[&str], peer: [u8; 4], method: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let hosts = Hosts::new(&hosts.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
        let name = |name: &str| header::HeaderName::from_bytes(name.as_bytes()).unwrap();
        let mut map = HeaderMap::new();
        for (key, value) in headers {
            map.append(name(key), value.parse().unwrap());
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        hosts.check(peer.into(), &method, &"/".parse().unwrap(), &map).err().map(|refused| refused.0.as_u16())
    }

    #[test]
    fn only_known_hosts_are_answered() {
        for good in ["localhost:7600", "127.0.0.1:7600", "[::1]:9", "LOCALHOST", "localhost.:1"] {
            assert_eq!(check(&[], HERE, "GET", &[("host", good)]), None, "{good}");
        }
        for bad in ["evil.example", "evil.example:7600", "localhost.evil.example", "10.0.0.5:7600", "127.0.0.1.nip.io"]
        {
            assert_eq!(check(&[], HERE, "GET", &[("host", bad)]), Some(421), "{bad}");
        }
        for bad in [&[][..], &[("host", "")], &[("host", "a b")], &[("host", "x@localhost")]] {
            assert_eq!(check(&[], HERE, "GET", bad), Some(400), "{bad:?}");
        }
        assert_eq!(check(&[], HERE, "GET", &[("host", "localhost"), ("host", "evil.example")]), Some(400));
    }

    #[test]
    fn other_host_names_must_be_configured() {
        assert_eq!(check(&[], THERE, "GET", &[("host", "localhost")]), Some(403));
        assert_eq!(check(&["Lab.example"], THERE, "GET", &[("host", "localhost")]), Some(421));
        assert_eq!(check(&["Lab.example"], THERE, "GET", &[("host", "lab.example:7600")]), None);
        assert_eq!(check(&["10.0.0.5"], HERE, "GET", &[("host", "10.0.0.5:7600")]), None);
        assert_eq!(check(&["fd00::5"], THERE, "GET", &[("host", "[fd00::5]:7600")]), None);
    }

    /// Other pages may link here, but they may not send requests.
    #[test]
    fn requests_of_other_pages_are_rejected() {
        let asked = |path: &str, site: &str| {
            let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
            headers.insert("sec-fetch-site", site.parse().unwrap());
            let path = path.parse().unwrap();
            Hosts::default().check(HERE.into(), &Method::GET, &path, &headers).err().map(|refused| refused.0.as_u16())
        };
        for (site, status) in
            [("same-origin", None), ("none", None), ("same-site", Some(403)), ("cross-site", Some(403))]
        {
            assert_eq!(asked("/api/play/move?player=random", site), status, "{site}");
            assert_eq!(asked("/", site), None, "{site}");
        }
    }

    #[test]
    fn changes_must_come_from_the_page_itself() {
        let host = ("host", "localhost:7600");
        assert_eq!(check(&[], HERE, "POST", &[host, ("origin", "http://localhost:7600")]), None);
        assert_eq!(check(&[], HERE, "POST", &[host, ("origin", "https://localhost:7600")]), None);
        for bad in ["http://localhost:3000", "http://evil.example", "null", "localhost:7600", "http://localhost:7600/x"]
        {
            assert_eq!(check(&[], HERE, "POST", &[host, ("origin", bad)]), Some(403), "{bad}");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            assert_eq!(check(&[], HERE, method, &[host]), Some(403), "{method}");
        }
        // A page in plain text is a different page from the one over TLS.
        let tls = |origin: &'static str| {
            let origin = (header::ORIGIN, HeaderValue::from_static(origin));
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost:7602")), origin]);
            let hosts = Hosts::of_tls(&[]);
            hosts.check(HERE.into(), &Method::POST, &"/".parse().unwrap(), &headers).is_ok()
        };
        assert!(tls("https://localhost:7602") && !tls("http://localhost:7602") && !tls("https://localhost:7600"));
        let twice = [host, ("origin", "http://localhost:7600"), ("origin", "http://localhost:7600")];
        assert_eq!(check(&[], HERE, "POST", &twice), Some(403));
    }
}
