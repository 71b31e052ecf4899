// One stream of events for all tabs of a browser, which opens only six connections to a host: the tab that holds a
// lock has it and passes on what comes. Where a page has no locks (in plain text from another host), each tab has its
// own.

const NAME = "evoxo-events";
const AGAIN_MS = 2000;

/**
 * What comes is given to `take`, and a loss told to `lost`. `whole` is all that is known, for a tab that comes later,
 * or null; `look` is called before a stream that was refused is opened again.
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
      // A browser tries again by itself, unless it was refused.
      if (own.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(() => look().catch(() => null).then(() => source === own && open()), AGAIN_MS);
    };
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  /** Has the stream until it is given up. */
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
      // It rejects if the wait is given up.
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
