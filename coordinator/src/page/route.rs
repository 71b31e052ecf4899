//! Requests and their answers: files, JSON, the stream of events, orders.

use std::{convert::Infallible, net::IpAddr};

use bytes::Bytes;
use evoxo_access::Id;
use evoxo_common::{experiment::settings_json, play::Wanted};
use evoxo_proto::{
    Level,
    shown::{batch_to_json, run_to_json, worker_to_json},
    v1,
};
use futures_util::StreamExt as _;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Body as _, Incoming};
use serde_json::{Value, json};
use tracing::info;

use super::{
    Inner,
    curves::{Middle, ROWS_MAX},
    door::Visitor,
    files,
    guard::{PageRefusal, protect},
    history::HistoryQuery,
    play::PlayRequest,
    told::Part,
    visit::Visit,
};
use crate::{
    access::Outcome,
    core::{Rejection, Request as CoreRequest, Response as CoreResponse, View},
    replicas::ReplicaKey,
};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The points of a curve if the request does not say how many.
const POINTS: usize = 300;
/// The longest address of a request, in bytes.
const TARGET_BYTES_MAX: usize = 1024;

/// The most batches of tasks that the page of a run shows.
const TASKS_SHOWN: u32 = 20;

/// A bug of the core.
const WRONG_KIND: &str = "the coordinator gave a response of the wrong kind";

const JSON: &str = "application/json";

/// Answers a request.
pub(super) async fn answer(page: &Inner, visit: &Visit, request: &Request<Incoming>) -> Response<Body> {
    let mut response = match visitor(page, visit, request) {
        Err(refused) => refusal(&refused),
        Ok(visitor) => entered(page, visit, &visitor, request).await,
    };
    protect(response.headers_mut());
    response
}

/// The answer to a request whose handler panicked.
pub(super) fn panicked() -> Response<Body> {
    let sentence = "the coordinator panicked over this request: please report this";
    refusal(&PageRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, sentence))
}

/// Answers a request in plain text to a page that is served over TLS.
pub(super) fn misled() -> Response<Body> {
    let sentence = "this page is served only over TLS: use an address that starts with https://";
    refusal(&PageRefusal::new(StatusCode::BAD_REQUEST, sentence))
}

/// The visitor who sends the request, if it is answered at all.
fn visitor(page: &Inner, visit: &Visit, request: &Request<Incoming>) -> Result<Visitor, PageRefusal> {
    let (uri, headers) = (request.uri(), request.headers());
    page.hosts.check(visit.peer, request.method(), uri, headers)?;
    limits(request)?;
    let visitor = match &page.door {
        None => Visitor::Anybody,
        Some(door) => door.visitor(visit, headers)?,
    };
    if !matches!(visitor, Visitor::Stranger) && !visit.is_known(visitor.id()) {
        let sentence = "this login has too many connections: close some windows";
        return Err(PageRefusal::new(StatusCode::TOO_MANY_REQUESTS, sentence));
    }
    Ok(visitor)
}

/// Answers a request about the visitor's session. Other requests pass if the visitor may look.
async fn entered(page: &Inner, visit: &Visit, visitor: &Visitor, request: &Request<Incoming>) -> Response<Body> {
    let (path, peer) = (request.uri().path(), visit.peer);
    let posted = *request.method() == Method::POST;
    let done = match (&page.door, path) {
        (Some(door), "/api/login") if posted => {
            let entered = door.login(peer, request.headers()).await;
            entered.map(|(visitor, cookie)| with_cookie(json_of(&visitor.json(page.owned)), cookie))
        }
        (Some(door), "/api/logout") if posted => {
            let left = door.logout(visitor, peer).await;
            left.map(|cookie| with_cookie(json_of(&json!({})), cookie))
        }
        (Some(_), "/api/login" | "/api/logout") => return not_allowed("POST"),
        _ if !path.starts_with("/api/") => return routed(page, visit, visitor, request).await,
        (_, "/api/session") => visitor.may_look().map(|()| json_of(&visitor.json(page.owned))),
        _ => match visitor.may_look() {
            Ok(()) => return routed(page, visit, visitor, request).await,
            Err(refused) => Err(refused),
        },
    };
    done.unwrap_or_else(|refused| failure(refused.0, &refused.1))
}

fn with_cookie(mut response: Response<Body>, cookie: HeaderValue) -> Response<Body> {
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

fn limits(request: &Request<Incoming>) -> Result<(), PageRefusal> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > TARGET_BYTES_MAX {
        return Err(PageRefusal::new(StatusCode::URI_TOO_LONG, "the address is too long"));
    }
    if !request.body().is_end_stream() {
        return Err(PageRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "a request to the page must not have a body"));
    }
    Ok(())
}

async fn routed(page: &Inner, visit: &Visit, visitor: &Visitor, request: &Request<Incoming>) -> Response<Body> {
    let path = request.uri().path();
    let query = Query(request.uri().query().unwrap_or_default());
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let known = |etag: &str| request.headers().get(header::IF_NONE_MATCH).is_some_and(|tag| tag == etag);
    if is_order(&parts) {
        return match *request.method() == Method::POST {
            true => ordered(page, visit.peer, visitor, &parts, &query).await,
            false => not_allowed("POST"),
        };
    }
    if !reads {
        return not_allowed("GET, HEAD");
    }
    match parts.as_slice() {
        ["api", "events"] => match events(page, visit, visitor) {
            Some(events) => whole(StatusCode::OK, "text/event-stream", events),
            None => failure(StatusCode::TOO_MANY_REQUESTS, "too many people view this page at once: try again later"),
        },
        ["api", what @ ("seen" | "hidden")] => json_of(&seen(page, what)),
        ["api", "runs"] => json_of(&runs_json(page)),
        ["api", "play"] => match page.players.offers() {
            Some(offers) => json_of(&offers),
            None => failure(StatusCode::NOT_FOUND, "this program knows no game"),
        },
        ["api", "play", what] => {
            let Some(asked) = asked(what, &query) else {
                return failure(StatusCode::BAD_REQUEST, "the request has no query, or a value is not a number");
            };
            match page.players.ask(asked).await {
                Ok(bytes) => whole(StatusCode::OK, JSON, full(bytes)),
                Err(rejection) => rejected(&rejection),
            }
        }
        ["api", "runs", name] => match page.core.views.get(name) {
            Some(view) => json_of(&run_json(&view.borrow())),
            None => failure(StatusCode::NOT_FOUND, "there is no run of this name here"),
        },
        ["api", "runs", name, "tasks"] => tasks(page, name).await,
        ["api", "runs", name, "champion"] => match (replica(&query), query.number("parts")) {
            (Some(replica), Ok(parts)) => match page.players.show(name, replica, parts).await {
                Ok(bytes) => whole(StatusCode::OK, JSON, full(bytes)),
                Err(rejection) => rejected(&rejection),
            },
            _ => failure(StatusCode::BAD_REQUEST, "give the numbers of an arm and of a replica"),
        },
        ["api", "runs", name, "comparison"] => match query.text("with") {
            None => failure(StatusCode::BAD_REQUEST, "give the name of the other run: with=NAME"),
            Some(other) => json_or_rejection(page.reports.compare(name, other).await),
        },
        ["api", "runs", name, "conclusion"] => {
            json_or_rejection(page.reports.conclusion(name).await.map(|sentence| json!({ "conclusion": sentence })))
        }
        ["api", "runs", name, what @ ("report" | "plots" | "candidates")] => {
            match page.reports.ask(name, part(what)).await {
                Ok((tag, bytes)) => tagged(&format!("\"{tag}\""), JSON, bytes, known),
                Err(rejection) => rejected(&rejection),
            }
        }
        ["api", "runs", name, what @ ("curves" | "replicas" | "history")] => {
            let Some(question) = question(what, &query) else {
                return failure(
                    StatusCode::BAD_REQUEST,
                    "the request lacks a part of its query, or a value is not a number",
                );
            };
            match page.history.ask(name, question).await {
                Ok((tag, bytes)) => tagged(&format!("\"{tag}\""), JSON, bytes, known),
                Err(rejection) => rejected(&rejection),
            }
        }
        _ => match files::file(path) {
            Some(file) => tagged(files::tag(), file.media, file.body(), known),
            None => failure(StatusCode::NOT_FOUND, "there is nothing at this address"),
        },
    }
}

/// The tasks of a run that workers have now.
async fn tasks(page: &Inner, name: &str) -> Response<Body> {
    match page.core.ask(CoreRequest::Tasks { name: name.to_owned(), limit: TASKS_SHOWN }).await {
        Ok(CoreResponse::Tasks(tasks)) => json_of(&json!({
            "batches": tasks.batches.iter().map(batch_to_json).collect::<Value>(),
            "left_out": tasks.left_out,
        })),
        Ok(_) => failure(StatusCode::INTERNAL_SERVER_ERROR, WRONG_KIND),
        Err(rejection) => rejected(&rejection),
    }
}

/// The stream of events, until the visitor's session ends or it must make room for others. `None` if there are too many
/// streams.
fn events(page: &Inner, visit: &Visit, visitor: &Visitor) -> Option<Body> {
    let place = page.streams.take(visit.peer, visit.owner(visitor.id()), Some(visit.leave()))?;
    let left = place.notice().given();
    let viewer = page.viewers.enter();
    // Both are held until the stream ends.
    let events = page
        .live
        .events()
        .inspect(move |_| {
            let _kept = (&place, &viewer);
        })
        .take_until(Box::pin(left));
    Some(match &page.door {
        None => StreamBody::new(events).boxed_unsync(),
        Some(door) => StreamBody::new(events.take_until(Box::pin(door.ended(visitor)))).boxed_unsync(),
    })
}

/// An order that a visitor gives with a button.
struct Order<'a> {
    verb: &'a str,
    /// What the order is about: for people, and as the audit log names it.
    what: &'static str,
    object: String,
    request: CoreRequest,
    done: &'static str,
}

/// Whether an address names an order.
fn is_order(parts: &[&str]) -> bool {
    matches!(
        parts,
        ["api", "runs", _, "pause" | "resume" | "cancel" | "delete" | "note"] | ["api", "workers", _, "drain"]
    )
}

fn order_of<'a>(
    page: &Inner,
    peer: IpAddr,
    visitor: &Visitor,
    parts: &[&'a str],
    query: &Query<'_>,
) -> Result<Order<'a>, PageRefusal> {
    let nothing = || PageRefusal::new(StatusCode::NOT_FOUND, "there is nothing at this address");
    Ok(match *parts {
        ["api", "runs", name, verb] => {
            let own = name.to_owned();
            let (request, done) = match verb {
                "pause" => (CoreRequest::Pause { name: own }, "paused"),
                "resume" => (CoreRequest::Resume { name: own }, "resumed"),
                "cancel" => (CoreRequest::Cancel { name: own, delete: false }, "cancelled"),
                "delete" => (CoreRequest::Cancel { name: own, delete: true }, "deleted"),
                _ => {
                    let submitter = visitor.id().map_or_else(|| peer.to_string(), Id::to_string);
                    (noted(page, own, submitter, query)?, "noted")
                }
            };
            Order { verb, what: "run", object: name.to_owned(), request, done }
        }
        ["api", "workers", session, verb] => {
            let sessions = vec![session.parse().map_err(|_| nothing())?];
            let named = v1::DrainWorkersRequest { sessions, ..Default::default() };
            let object = format!("session {session}");
            Order { verb, what: "worker", object, request: CoreRequest::Drain(named), done: "drained" }
        }
        _ => return Err(nothing()),
    })
}

/// The request that gives a run the note `text` of the query: the same run with another term.
fn noted(page: &Inner, name: String, submitter: String, query: &Query<'_>) -> Result<CoreRequest, PageRefusal> {
    let bad = |sentence: &'static str| PageRefusal::new(StatusCode::BAD_REQUEST, sentence);
    let value = query.text("text").and_then(decoded).ok_or_else(|| bad("give the note: text=NOTE"))?;
    let known = page.core.views.get(&name).and_then(|view| {
        let view = view.borrow();
        Some((view.prepared.clone()?, view.run.state()))
    });
    let missing = || PageRefusal::new(StatusCode::NOT_FOUND, "there is no run of this name here");
    let (prepared, state) = known.ok_or_else(missing)?;
    if state == v1::RunState::Cancelled {
        // Submitting it again, even with the same settings, would continue it.
        return Err(bad("a cancelled run takes no note: submit it again first"));
    }
    let terms = vec![v1::Term { name: "note".into(), value }];
    Ok(CoreRequest::Submit { name, prepared, level: Level::Plain, submitter, terms })
}

/// The text of a value in a query, with `%XX` for bytes; `None` if that is not a text.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => (16 * digit(rest.next())? + digit(rest.next())?) as u8,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Answers an order. A visitor without the right to give it learns nothing else about it.
async fn ordered(page: &Inner, peer: IpAddr, visitor: &Visitor, parts: &[&str], query: &Query<'_>) -> Response<Body> {
    match order_of(page, peer, visitor, parts, query) {
        Ok(order) => carry_out(page, peer, visitor, order).await,
        Err(malformed) => {
            let PageRefusal(status, sentence) = visitor.may_order(parts[3], page.owned).err().unwrap_or(malformed);
            failure(status, &sentence)
        }
    }
}

/// Carries out an order, if the visitor may give it.
async fn carry_out(page: &Inner, peer: IpAddr, visitor: &Visitor, order: Order<'_>) -> Response<Body> {
    let Order { verb, what, object, request, done } = order;
    let answer = match visitor.may_order(verb, page.owned) {
        Ok(()) => page.core.ask(request).await.map_err(|rejection| (refused(&rejection), rejection.is_in_doubt())),
        Err(refused) => Err((refused, false)),
    };
    if let Some(door) = &page.door {
        let outcome = match &answer {
            Ok(_) => Outcome::Done,
            Err((PageRefusal(_, why), true)) => Outcome::Unknown(why),
            Err((PageRefusal(_, why), false)) => Outcome::Refused(why),
        };
        door.audit(visitor, peer, done, &object, outcome).wait().await;
    }
    let json = match answer {
        Ok(CoreResponse::Run(run) | CoreResponse::Submitted { run, .. }) => run_to_json(&run),
        Ok(CoreResponse::Workers(workers)) => json!({"workers": workers.iter().map(worker_to_json).collect::<Value>()}),
        Ok(_) => {
            return failure(StatusCode::INTERNAL_SERVER_ERROR, WRONG_KIND);
        }
        Err((PageRefusal(status, sentence), _)) => return failure(status, &sentence),
    };
    let whose = visitor.id().map_or_else(|| peer.to_string(), |id| format!("{id} at {peer}"));
    info!("{what} {object}: {done} on the page by {whose}");
    json_of(&json)
}

/// Whether anybody has the page open. If `what` is "hidden", the caller's own page is hidden.
fn seen(page: &Inner, what: &str) -> Value {
    if what == "hidden" {
        page.viewers.is_hidden();
    }
    json!({ "seen": page.viewers.is_seen() })
}

fn runs_json(page: &Inner) -> Value {
    json!({ "runs": page.core.views.list().iter().map(|view| run_to_json(&view.run)).collect::<Value>() })
}

/// A run with its settings.
fn run_json(view: &View) -> Value {
    let mut json = run_to_json(&view.run);
    let Some(prepared) = &view.prepared else { return json };
    let config = &prepared.config;
    let fields = config.kind.schema.fields().iter();
    json["config"] = prepared.toml.as_str().into();
    json["seed"] = config.seed.to_string().into();
    json["champions"] = (!config.kind.cards.is_empty()).into();
    json["summary"] = config.kind.schema.summary.into();
    json["columns"] =
        config.kind.columns.iter().map(|column| json!({"name": column.name, "doc": column.doc})).collect();
    json["primary"] = config.kind.primary_metric.into();
    json["settings"] = fields.map(|field| json!({"name": field.name, "doc": field.doc})).collect();
    json["arm_settings"] = (0..config.arms.len()).map(|arm| settings_json(config, arm)).collect();
    json
}

/// The pairs of a query.
struct Query<'a>(&'a str);

impl Query<'_> {
    /// The first value of this name.
    fn text(&self, name: &str) -> Option<&str> {
        let mut values = self.0.split('&').filter_map(|pair| pair.split_once('=')).filter(|(key, _)| *key == name);
        values.next().map(|(_, value)| value)
    }

    /// The number of this name, if there is one; `Err` if the value is not a number.
    fn number(&self, name: &str) -> Result<Option<usize>, ()> {
        self.text(name).map(|value| value.parse().map_err(drop)).transpose()
    }
}

/// The replica that a query names.
fn replica(query: &Query<'_>) -> Option<ReplicaKey> {
    let number = |name: &str| query.number(name).ok()??.try_into().ok();
    Some(ReplicaKey { arm: number("arm")?, index: number("replica")? })
}

/// The part of a report at an address.
fn part(what: &str) -> Part {
    match what {
        "plots" => Part::Plots,
        "candidates" => Part::Candidates,
        _ => Part::Tables,
    }
}

/// The question about a run's histories.
fn question(what: &str, query: &Query<'_>) -> Option<HistoryQuery> {
    let number = |name: &str| query.number(name).ok();
    let from_row = number("from_row")?;
    Some(match what {
        "curves" => {
            let column = number("column")??;
            let middle = match query.text("middle") {
                None | Some("mean") => Middle::Mean,
                Some("median") => Middle::Median,
                Some(_) => return None,
            };
            let points = number("points")?.unwrap_or(POINTS).min(ROWS_MAX);
            match from_row {
                Some(from_row) => HistoryQuery::Rows { column, middle, from_row },
                None => HistoryQuery::Curves { column, middle, points },
            }
        }
        "replicas" => HistoryQuery::Replicas { from: number("from")?.unwrap_or(0) },
        _ => HistoryQuery::Replica { replica: replica(query)?, from_row: from_row.unwrap_or(0) },
    })
}

/// A question of a person who plays.
fn asked(what: &str, query: &Query<'_>) -> Option<PlayRequest> {
    let wanted = match what {
        "introduction" => Wanted::Introduction,
        "position" => Wanted::Position,
        "move" => Wanted::Move,
        "thoughts" => Wanted::Thoughts,
        _ => return None,
    };
    let plies = query.number("plies").ok()?.map(u32::try_from).transpose().ok()?;
    let text = |name: &str| query.text(name).unwrap_or_default().to_owned();
    Some(PlayRequest { game: text("game"), moves: text("moves"), player: text("player"), plies, wanted })
}

fn whole(status: StatusCode, media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

fn json_of(value: &Value) -> Response<Body> {
    whole(StatusCode::OK, JSON, full(value.to_string().into()))
}

/// An answer that is sent only if the browser does not have it already.
fn tagged(tag: &str, media: &'static str, bytes: Bytes, known: impl Fn(&str) -> bool) -> Response<Body> {
    let mut response = match known(tag) {
        true => whole(StatusCode::NOT_MODIFIED, media, full(Bytes::new())),
        false => whole(StatusCode::OK, media, full(bytes)),
    };
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    response
}

fn failure(status: StatusCode, sentence: &str) -> Response<Body> {
    whole(status, JSON, full(json!({ "error": sentence }).to_string().into()))
}

fn not_allowed(methods: &'static str) -> Response<Body> {
    let mut response = failure(StatusCode::METHOD_NOT_ALLOWED, "this address does not support that method");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    response
}

/// A refusal. It ends the connection, because the rest of the request was not read.
fn refusal(refused: &PageRefusal) -> Response<Body> {
    let mut response = failure(refused.0, &refused.1);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn json_or_rejection(answer: Result<Value, Rejection>) -> Response<Body> {
    answer.map_or_else(|rejection| rejected(&rejection), |json| json_of(&json))
}

fn rejected(rejection: &Rejection) -> Response<Body> {
    let PageRefusal(status, sentence) = refused(rejection);
    failure(status, &sentence)
}

fn refused(rejection: &Rejection) -> PageRefusal {
    let (status, sentence) = match rejection {
        Rejection::Invalid(why) => (StatusCode::BAD_REQUEST, why),
        Rejection::NotFound(why) => (StatusCode::NOT_FOUND, why),
        Rejection::Denied(why) => (StatusCode::FORBIDDEN, why),
        Rejection::Conflict(why) | Rejection::Unstored(why) => (StatusCode::CONFLICT, why),
        Rejection::Exhausted(why) => (StatusCode::TOO_MANY_REQUESTS, why),
        Rejection::Unavailable(why) | Rejection::Interrupted(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    };
    PageRefusal::new(status, sentence.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_decoded() {
        assert_eq!(decoded("best%20so%20far%3A%20%C3%A4").as_deref(), Some("best so far: ä"));
        assert_eq!(decoded("").as_deref(), Some(""));
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
