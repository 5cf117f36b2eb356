//! The page of `diagnose -o html`, live: made when somebody asks for it, of the state that the operator holds.

pub mod server;

use axum::body::Bytes;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Between two pages at least.
const PAUSE: Duration = Duration::from_secs(1);
/// While a page is made the operator does nothing else: the pause is so many times as long.
const SHARE: u32 = 9;
/// Readers that may wait for a page at once.
const READERS: usize = 64;

/// Gets the page, which shares its bytes with all readers. There is none before the first verdicts.
type Reader = oneshot::Sender<Option<Bytes>>;

/// The operator's end of the page. Nobody is served any more when it is dropped.
pub struct LivePage {
    readers: mpsc::Receiver<Reader>,
    revision: watch::Sender<u64>,
}

impl LivePage {
    pub fn serve(listener: std::net::TcpListener, tasks: &mut JoinSet<()>) -> Self {
        // One page is asked for at a time.
        let (ask, readers) = mpsc::channel(1);
        let (wait, waiting) = mpsc::channel(READERS);
        let (revision, revisions) = watch::channel(0);
        tasks.spawn(make_for_all(waiting, ask));
        tasks.spawn(server::serve(listener, wait, revisions));
        Self { readers, revision }
    }

    /// Something else is said now: whoever looks at the page hears of it.
    pub fn say(&self, revision: u64) {
        self.revision.send_if_modified(|known| std::mem::replace(known, revision) != revision);
    }
}

/// Resolves when somebody wants to read the page; never where it is not served.
pub async fn wanted(page: &mut Option<LivePage>) -> Option<Reader> {
    match page {
        Some(page) => page.readers.recv().await,
        None => std::future::pending().await,
    }
}

/// One page for all who asked before it was begun.
async fn make_for_all(mut waiting: mpsc::Receiver<Reader>, ask: mpsc::Sender<Reader>) {
    let mut readers = Vec::new();
    while waiting.recv_many(&mut readers, READERS).await > 0 {
        let begun = Instant::now();
        let (reader, page) = oneshot::channel();
        if ask.send(reader).await.is_err() {
            return;
        }
        let page = page.await.ok().flatten();
        for reader in readers.drain(..) {
            // Who no longer waits needs none.
            let _ = reader.send(page.clone());
        }
        sleep(PAUSE.max(begun.elapsed() * SHARE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PAGE: &[u8] = b"page";

    #[tokio::test(start_paused = true)]
    async fn all_who_wait_get_one_page_and_the_next_one_comes_after_a_pause() {
        let (ask, mut asked) = mpsc::channel::<Reader>(1);
        let (wait, waiting) = mpsc::channel(READERS);
        let mut answers = Vec::new();
        for _ in 0..3 {
            let (reader, answer) = oneshot::channel();
            wait.send(reader).await.expect("there is room");
            answers.push(answer);
        }
        tokio::spawn(make_for_all(waiting, ask));
        let begun = tokio::time::Instant::now();
        asked.recv().await.expect("one asks").send(Some(Bytes::from_static(PAGE))).expect("it waits");
        for answer in answers {
            let page = answer.await.expect("it is answered").expect("there is a page");
            assert_eq!(page.as_ptr(), PAGE.as_ptr(), "nobody gets a copy");
        }
        let (late, _answer) = oneshot::channel();
        wait.send(late).await.expect("there is room");
        asked.recv().await.expect("one asks again");
        assert!(begun.elapsed() >= PAUSE, "{:?}", begun.elapsed());
    }
}
