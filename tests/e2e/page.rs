//! The page that `nodewhy diagnose -o html` prints, in a browser. `tests/it/page` reads its text.

mod browser;
