//! A connection whose peer must read the answers: if nothing can be written for too long, the connection fails.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

/// A connection with a limit on how long nothing can be written.
pub(super) struct Timed<T> {
    stream: T,
    limit: Duration,
    /// Runs while the peer does not read.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<T> Timed<T> {
    pub(super) fn new(stream: T, limit: Duration) -> Self {
        Self { stream, limit, stalled: None }
    }

    /// Passes on the result of a write, unless writing has been blocked for too long.
    fn judge<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Timed<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Timed<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_stops_reading_is_dropped_but_a_slow_one_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let limit = Duration::from_secs(1);
        let mut timed = Timed::new(ours, limit);
        let slow = tokio::spawn(async move {
            let mut piece = [0; 8];
            // Reading takes longer than the limit in total.
            for _ in 0..10 {
                tokio::time::sleep(limit / 4).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
            theirs
        });
        timed.write_all(&[1; 80]).await.unwrap();
        let theirs = slow.await.unwrap();
        let given_up = timed.write_all(&[1; 40]).await.unwrap_err();
        assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }
}
