//! Several pieces read at once.

use std::num::NonZero;
use std::thread;

/// Reads pieces on all processors, and hands over what each gave in the order of the pieces.
pub(super) fn read<P: Sync, R: Send>(pieces: &[P], read: impl Fn(&P) -> R + Sync, mut take: impl FnMut(&P, R)) {
    /// Fewer are not worth a thread.
    const LEAST: usize = 16;
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let of_share = |share: &[P]| share.iter().map(&read).collect::<Vec<R>>();
    let read: Vec<Vec<R>> = thread::scope(|scope| {
        let mut shares = pieces.chunks(pieces.len().div_ceil(threads).max(LEAST));
        let own = shares.next_back().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || of_share(share))).collect();
        let own = of_share(own);
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        others.chain([own]).collect()
    });
    for (piece, read) in pieces.iter().zip(read.into_iter().flatten()) {
        take(piece, read);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_read_comes_in_the_order_of_the_pieces() {
        for pieces in [0, 1, 16, 641] {
            let pieces: Vec<usize> = (0..pieces).collect();
            let mut seen = Vec::new();
            super::read(&pieces, |piece| piece * 2, |piece, twice| seen.push((*piece, twice)));
            assert_eq!(seen, pieces.iter().map(|piece| (*piece, piece * 2)).collect::<Vec<_>>());
        }
    }
}
