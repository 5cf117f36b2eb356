//! Checks of texts and files: links, the site, the walls between crates, what is generated, the rows of what upstream
//! says. `cargo xtask tidy` runs them.

mod chart;
mod crd;
mod docs;
mod fixes_template;
mod line_width;
mod literals;
mod new_cause;
mod plain_english;
mod real_logs;
mod shipped;
mod site;
mod upstream;
mod walls;

// The skeleton of a rule, which `new_cause` compiles, names these as a rule of the engine does.
use engine::{case, rules};
