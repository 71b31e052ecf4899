//! Requests to a bucket, each with a deadline that depends on its size. A common deadline would have to be long enough for
//! the largest checkpoint, and a store that hangs for a moment would then delay even the smallest request for that long.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
        SpawnedReqwestConnector,
    },
};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long an answer may take to begin, and each further part of it to arrive. Together with the pauses of the client, of
/// the store's thread and of the core this stays below 10 s, the time within which work must continue after a store has
/// recovered.
const ANSWER_TIME: Duration = Duration::from_secs(4);
/// A request body gets another second for each of so many bytes.
const BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;

/// Connects clients whose requests have these deadlines.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) inner: SpawnedReqwestConnector,
    /// How many times slower than usual the network may be.
    pub(super) slowness: f64,
}

impl HttpConnector for Prompt {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = self.inner.connect(options)?;
        Ok(HttpClient::new(Timed { inner, slowness: self.slowness }))
    }
}

#[derive(Debug)]
struct Timed {
    inner: HttpClient,
    slowness: f64,
}

/// How long the answer to a request of so many bytes may take to begin.
fn time_for(bytes: usize, slowness: f64) -> Duration {
    (ANSWER_TIME + Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND)).mul_f64(slowness)
}

fn late(time: Duration) -> HttpError {
    let why = format!("the store has not answered for {} s", time.as_secs());
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, why))
}

#[async_trait]
impl HttpService for Timed {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let time = time_for(request.body().content_length(), self.slowness);
        let answer = timeout(time, self.inner.execute(request)).await.map_err(|_| late(time))??;
        let pause = time_for(0, self.slowness);
        Ok(answer.map(|inner| HttpResponseBody::new(Parts { inner, pause, end: Box::pin(sleep(pause)) })))
    }
}

/// An answer with a deadline for each of its parts.
struct Parts {
    inner: HttpResponseBody,
    pause: Duration,
    end: Pin<Box<Sleep>>,
}

impl Body for Parts {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(part) = Pin::new(&mut self.inner).poll_frame(cx) {
            let end = Instant::now() + self.pause;
            self.end.as_mut().reset(end);
            return Poll::Ready(part);
        }
        self.end.as_mut().poll(cx).map(|()| Some(Err(late(self.pause))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_and_slow_lines_get_more_time() {
        assert_eq!([0, 100 << 20].map(|bytes| time_for(bytes, 1.0).as_secs()), [4, 104]);
        assert_eq!(time_for(1 << 20, 3.0).as_secs(), 15);
    }
}
