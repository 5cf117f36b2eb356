//! The page that `nodewhy diagnose -o html` prints. `tests/e2e/page` opens it in a browser.

mod content;
