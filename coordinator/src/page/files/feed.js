// One stream of events for all tabs of a browser, because browsers open only six connections to a host. The tab that
// holds a lock has the stream and passes on its messages. If a page has no locks (over plain HTTP from another host),
// each tab has its own stream.

const NAME = "evoxo-events";
const AGAIN_MS = 2000;

/**
 * Passes messages to `take` and calls `lost` when the stream is lost. `whole` returns everything that is known, for
 * tabs opened later, or null. `look` is called before a rejected stream is opened again.
 */
export function feed({ take, lost, whole, look }) {
  const shared = "locks" in navigator && "BroadcastChannel" in window;
  const channel = shared ? new BroadcastChannel(NAME) : null;
  let [source, timer, waiting, release] = [null, null, null, null];
  let [awake, follows, broken] = [false, false, false];
  const tell = (said) => channel?.postMessage(said);

  function open() {
    const own = new EventSource("/api/events");
    source = own;
    source.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      broken = false;
      take(message);
      tell({ message });
    };
    source.onerror = () => {
      broken = true;
      lost();
      tell({ lost: true });
      // A browser reconnects by itself, unless the stream was rejected.
      if (own.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(() => look().catch(() => null).then(() => source === own && open()), AGAIN_MS);
    };
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  /** Holds the stream until it is given up. */
  function lead() {
    if (!awake) return null;
    open();
    return new Promise((done) => { release = done; }).then(close);
  }

  if (channel) {
    channel.onmessage = ({ data }) => {
      if (data.ask) {
        const message = source && whole();
        if (message) tell({ message });
        if (source && broken) tell({ lost: true });
      } else if (awake && !source) {
        follows ||= Boolean(data.message?.whole);
        if (data.lost) lost();
        else if (follows) take(data.message);
      }
    };
  }

  return {
    begin() {
      if (awake) return;
      awake = true;
      if (!channel) return open();
      waiting = new AbortController();
      // The promise rejects if waiting for the lock is aborted.
      navigator.locks.request(NAME, { signal: waiting.signal }, lead).catch(() => null);
      tell({ ask: true });
    },
    end() {
      [awake, follows] = [false, false];
      waiting?.abort();
      release?.();
      close();
    },
  };
}
